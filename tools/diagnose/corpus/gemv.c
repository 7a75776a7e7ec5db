// options: -O3
// A matrix times a vector, with the loop over columns outside.
#include <stdio.h>
#include <stdlib.h>
#define N 1300
static void gemv(const float *a, const float *x, float *restrict y) {
#ifdef FIXED
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
#else
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
#endif
			y[i] += a[(size_t)i * N + j] * x[j]; // planted: stride
}
int main(void) {
	float *a = malloc(sizeof(float) * N * N), *x = calloc(N, 4), *y = calloc(N, 4);
	for (int i = 0; i < N * N; i++)
		a[i] = i % 11;
	gemv(a, x, y);
	printf("%g\n", y[3]);
}
