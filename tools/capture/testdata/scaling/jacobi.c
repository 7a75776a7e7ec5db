// Ten sweeps over n × n, there and back: each element becomes the mean of its four
// neighbours; n is given.
#include <stdio.h>
#include <stdlib.h>

// Arrays begin with a line, whatever n is.
static double *array(long n)
{
	return aligned_alloc(64, ((size_t)(n * n) * sizeof(double) + 63) / 64 * 64);
}

void sweep(long n, double *restrict to, const double *restrict from)
{
	for (long i = 1; i < n - 1; i++)
		for (long j = 1; j < n - 1; j++)
			to[i * n + j] = 0.25 * (from[i * n + j - 1] + from[i * n + j + 1] + from[(i - 1) * n + j] + from[(i + 1) * n + j]);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	double *a = array(n), *b = array(n);
	for (long k = 0; k < n * n; k++)
		a[k] = b[k] = (double)(k % 7);
	for (int t = 0; t < 5; t++) {
		sweep(n, b, a);
		sweep(n, a, b);
	}
	printf("%g\n", a[n + n / 2]);
	free(a);
	free(b);
	return 0;
}
