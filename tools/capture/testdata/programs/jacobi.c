#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sweep(int n, const double *from, double *to)
{
	for (int i = 1; i < n - 1; i++)
		for (int j = 1; j < n - 1; j++)
			to[i * n + j] = 0.2 * (from[i * n + j] + from[i * n + j - 1] + from[i * n + j + 1] + from[(i - 1) * n + j] + from[(i + 1) * n + j]);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 30;
	double *a = calloc((size_t)n * n, sizeof *a), *b = malloc((size_t)n * n * sizeof *b);
	for (int i = 0; i < n; i++)
		a[i] = sin(i);
	memcpy(b, a, (size_t)n * n * sizeof *b);
	for (int t = 0; t < 10; t++) {
		sweep(n, a, b);
		sweep(n, b, a);
	}
	printf("%.6f\n", a[n + n / 2]);
	free(a);
	free(b);
	return 0;
}
