// Counts how often the loops run for the two sizes that the harness times.
#define main timer
#include "harness.c"
#undef main

unsigned long pipelines_count, pipelines_counts[1 << 16];

#ifdef WHOLE_SIZE
// Prints how often each block of each function runs in a call.
int main(void) {
	for (unsigned long e = 0; e < sizeof entries / sizeof *entries; e++) {
		fill(LARGE);
		for (int k = 0; k < 1 << 16; k++) pipelines_counts[k] = 0;
		entries[e].run(LARGE, a, b, c, f, g, i, j, p, q);
		printf("%s", entries[e].name);
		for (int k = 0; k < BLOCKS; k++) printf(" %lu", pipelines_counts[k]);
		printf("\n");
	}
}
#else
int main(void) {
	for (unsigned long e = 0; e < sizeof entries / sizeof *entries; e++) {
		unsigned long count[2];
		for (int k = 0; k < 2; k++) {
			fill(SMALL);
			pipelines_count = 0;
			entries[e].run(k ? LARGE : SMALL, a, b, c, f, g, i, j, p, q);
			count[k] = pipelines_count;
		}
		printf("%s %lu\n", entries[e].name, count[1] - count[0]);
	}
}
#endif
