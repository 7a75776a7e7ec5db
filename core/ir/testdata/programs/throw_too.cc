// The other user of the shared template.
#include "throw.h"

long other_file(int n)
{
	std::vector<long> list;
	long sum = 0;
	std::vector<int> ints;
	for (int i = 0; i < n; i++) {
		try {
			sum += shared(list, (long)i) + shared(ints, i);
		} catch (...) {
			sum--;
		}
	}
	return sum;
}
