// A product of matrices of n × n and sweeps of a five-point stencil over as many points, each
// shared out by rows; n is given. Sizes that 16 threads divide alike leave no rest.
#include <stdio.h>
#include <stdlib.h>

static double *array(long n)
{
	return aligned_alloc(64, ((size_t)(n * n) * sizeof(double) + 63) / 64 * 64);
}

static void gemm(long n, double *restrict c, const double *restrict a, const double *restrict b)
{
#pragma omp parallel for
	for (long i = 0; i < n; i++)
		for (long k = 0; k < n; k++)
			for (long j = 0; j < n; j++)
				c[i * n + j] += a[i * n + k] * b[k * n + j];
}

static void jacobi(long n, double *restrict to, const double *restrict from)
{
#pragma omp parallel for
	for (long i = 0; i < n; i++)
		for (long j = 1; j < n - 1; j++) {
			long up = i > 0 ? i - 1 : i, down = i < n - 1 ? i + 1 : i;
			to[i * n + j] = 0.2 * (from[i * n + j] + from[up * n + j] + from[down * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
		}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 16, stencil = argc > 2;
	double *a = array(n), *b = array(n), *c = array(n);
	for (long i = 0; i < n * n; i++)
		a[i] = b[i] = (double)(i % 7), c[i] = 0;
	if (stencil)
		for (int sweep = 0; sweep < 2; sweep++) {
			jacobi(n, b, a);
			jacobi(n, a, b);
		}
	else
		gemm(n, c, a, b);
	printf("%g\n", a[n] + c[n * n - 1]);
	return 0;
}
