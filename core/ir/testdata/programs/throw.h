#include <stdexcept>
#include <string>
#include <vector>

// The same code in two files: the linker keeps one.
inline int calls_of_shared = 0;

template <typename T> T shared(std::vector<T> &list, T x)
{
	static T last = 0;
	calls_of_shared++;
	list.push_back(x + last);
	last = x;
	if (list.size() % 7 == 0)
		throw std::runtime_error("seven of " + std::to_string(list.size()));
	return list.back();
}

long other_file(int);
