// The probe phase of a hash join: each key looks up one bucket of a table beyond the caches.
// The twin has partitioned the keys, so that each part of the table is used at one time.
#include <stdio.h>
#include <stdlib.h>
#define BUCKETS (1 << 19)
#define KEYS 300000
struct bucket {
	unsigned key, rows;
};

static unsigned long probe(const struct bucket *table, const unsigned *keys) {
	unsigned long matched = 0;
	for (int i = 0; i < KEYS; i++)
		matched += table[keys[i]].rows; // planted: random-access
	return matched;
}

int main(void) {
	struct bucket *table = calloc(BUCKETS, sizeof *table);
	unsigned *keys = malloc(KEYS * sizeof *keys), seed = 1;
	for (int i = 0; i < KEYS; i++) {
		seed = seed * 1664525u + 1013904223u;
#ifdef FIXED
		keys[i] = (i * (unsigned long)BUCKETS / KEYS & ~7ul) + (seed >> 29);
#else
		keys[i] = seed >> 13;
#endif
	}
	unsigned long matched = 0;
	for (int pass = 0; pass < 4; pass++)
		matched += probe(table, keys);
	printf("%lu\n", matched);
}
