// C = A·B of n × n, by rows and columns; n is given.
#include <stdio.h>
#include <stdlib.h>

// Arrays begin with a line, whatever n is.
static double *array(long n)
{
	return aligned_alloc(64, ((size_t)(n * n) * sizeof(double) + 63) / 64 * 64);
}

static void fill(long n, double *a, double by)
{
	for (long k = 0; k < n * n; k++)
		a[k] = by * (double)(k % 7);
}

void matmul(long n, double *restrict c, const double *restrict a, const double *restrict b)
{
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			double sum = 0;
			for (long k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			c[i * n + j] = sum;
		}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	double *a = array(n), *b = array(n), *c = array(n);
	fill(n, a, 0.5);
	fill(n, b, 0.25);
	matmul(n, c, a, b);
	printf("%g\n", c[n * n - 1]);
	free(a);
	free(b);
	free(c);
	return 0;
}
