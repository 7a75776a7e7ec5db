// Merge sort of n random numbers, from runs of one element upwards; n is given.
#include <stdio.h>
#include <stdlib.h>

static unsigned state = 1;

static unsigned draw(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

static long least(long x, long y) { return x < y ? x : y; }

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	unsigned *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
	for (long i = 0; i < n; i++)
		a[i] = draw();
	for (long w = 1; w < n; w *= 2) {
		for (long i = 0; i < n; i += 2 * w) {
			long middle = least(i + w, n), end = least(i + 2 * w, n), x = i, y = middle;
			for (long k = i; k < end; k++)
				b[k] = x < middle && (y >= end || a[x] <= a[y]) ? a[x++] : a[y++];
		}
		unsigned *other = a;
		a = b;
		b = other;
	}
	printf("%u\n", a[n / 2]);
	free(a);
	free(b);
	return 0;
}
