// LU factorisation of n × n, in place and without pivoting; n is given.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	double *a = malloc((size_t)(n * n) * sizeof *a);
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			a[i * n + j] = i == j ? (double)n : 1 / (double)(i + j + 1);
	for (long k = 0; k < n; k++)
		for (long i = k + 1; i < n; i++) {
			double factor = a[i * n + k] /= a[k * n + k];
			for (long j = k + 1; j < n; j++)
				a[i * n + j] -= factor * a[k * n + j];
		}
	printf("%g\n", a[n * n - 1]);
	free(a);
	return 0;
}
