// Vectors that begin a few bytes behind a line, so that vector accesses lie across lines.
// options: -O3
#include <stdio.h>
#include <stdlib.h>
#ifdef FIXED
#define SKIP 0
#else
#define SKIP 20
#endif

static void scale(float *restrict y, const float *restrict x, int n) {
	for (int i = 0; i < n; i++)
		y[i] = y[i] * 0.5f + x[i]; // planted: alignment
}

int main(void) {
	char *memory = aligned_alloc(64, 65536);
	float *x = (float *)(memory + SKIP), *y = (float *)(memory + 16384 + SKIP);
	for (int i = 0; i < 2048; i++)
		x[i] = y[i] = i;
	for (int pass = 0; pass < 200; pass++)
		scale(y, x, 2048);
	printf("%g\n", y[7]);
}
