// A histogram over far more bins than a cache holds; the twin sorts the keys first.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <algorithm>
template <class T> void count(std::vector<T> &bins, const std::vector<uint32_t> &keys) {
	for (size_t i = 0; i < keys.size(); i++)
		bins[keys[i]]++; // planted: random-access
}

int main() {
	const size_t n = 1 << 19;
	std::vector<uint32_t> keys(1 << 20), bins(n);
	uint32_t seed = 1;
	for (auto &k : keys) {
		seed = seed * 1664525u + 1013904223u;
#ifdef FIXED
		k = (&k - keys.data()) / 2;
#else
		k = seed >> 13;
#endif
	}
	count(bins, keys);
	std::printf("%u\n", bins[12]);
}
