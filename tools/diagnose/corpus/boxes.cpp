// A hash table of buckets of one line each, which begin in the middle of a line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
struct bucket {
	uint64_t key[4], value[4];
};

template <class B> uint64_t find(const B *table, uint32_t mask, uint64_t key) {
	const B &b = table[(key * 0x9e3779b97f4a7c15u >> 32) & mask];
	uint64_t sum = b.key[0] + b.value[0];
	if (b.key[3] != key)
		sum += b.value[3]; // planted: alignment
	return sum;
}

int main() {
	const uint32_t buckets = 1 << 15;
	char *memory = static_cast<char *>(aligned_alloc(64, (buckets + 1) * sizeof(bucket)));
#ifdef FIXED
	bucket *table = reinterpret_cast<bucket *>(memory);
#else
	bucket *table = reinterpret_cast<bucket *>(memory + 32);
#endif
	for (uint32_t i = 0; i < buckets; i++)
		for (int k = 0; k < 4; k++)
			table[i].key[k] = table[i].value[k] = i + k;
	uint64_t sum = 0;
	for (uint64_t n = 0; n < 400000; n++)
		sum += find(table, buckets - 1, n);
	std::printf("%llu\n", (unsigned long long)sum);
}
