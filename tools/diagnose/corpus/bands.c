/* Sums sixteen bands of a spectrum, each a power of two of samples behind the other. */
#include <stdio.h>
#include <stdlib.h>

#define LEN 4096
#ifdef FIXED
#define ROW (LEN + 8)
#else
#define ROW LEN
#endif
enum { BANDS = 32 };

static double at(const double *s, int i) {
	double v = 0;
	for (int b = 0; b < BANDS; b++)
		v += s[b * ROW + i]; /* planted: conflict */
	return v;
}

int main(void) {
	double *s = aligned_alloc(4096, BANDS * ROW * sizeof *s + 4096 - BANDS * ROW * sizeof *s % 4096), best = 0;
	for (int i = 0; i < BANDS * ROW; i++) s[i] = i % 17;
	for (int rep = 0; rep < 6; rep++)
		for (int i = 0; i < LEN; i++) {
			double v = at(s, i);
			if (v > best) best = v;
		}
	printf("%g\n", best);
	return 0;
}
