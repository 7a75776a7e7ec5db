// Two steps in place over samples, each a function object; the second one overwrites what the first one stores.
#include <cstdio>
#include <vector>
template <typename T> struct Gain { T by; T operator()(T x) const { return x * by; } };
template <typename T> struct Offset { T by; T operator()(T x) const { return x + by; } };

int main() {
	std::vector<double> v(200000, 1.5);
	for (int round = 0; round < 4; round++) {
#ifdef FIXED
		for (double &x : v)
			x = Offset<double>{0.25}(Gain<double>{1.01}(x));
#else
		for (double &x : v)
			x = Gain<double>{1.01}(x);
		for (double &x : v)
			x = Offset<double>{0.25}(x); // planted: fusion
#endif
	}
	std::printf("%g\n", v[99]);
}
