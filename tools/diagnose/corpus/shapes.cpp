// A filter over objects: the test reads one field of each, through a member function.
#include <cstdio>
#include <vector>
struct shape {
#ifndef FIXED
	double outline[14];
#endif
	int kind;
	int colour;
	bool is(int wanted) const { return kind == wanted; }
};

template <class S> static int count(const std::vector<S> &all, int wanted) {
	int n = 0;
	for (const S &s : all)
		if (s.is(wanted)) // planted: layout
			n++;
	return n;
}

int main() {
	std::vector<shape> all(20000);
	for (size_t i = 0; i < all.size(); i++)
		all[i].kind = i % 5;
	int n = 0;
	for (int pass = 0; pass < 30; pass++)
		n += count(all, pass % 5);
	std::printf("%d\n", n);
}
