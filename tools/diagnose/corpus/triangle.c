// The rows of a triangular product, divided into equal numbers of rows.
#include <stdio.h>
#include <omp.h>
#define N 512
static int a[N][N], sum[N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = i - j;
	for (int step = 0; step < 4; step++) {
#ifdef FIXED
		#pragma omp parallel for num_threads(4) schedule(dynamic, 16)
#else
		#pragma omp parallel for num_threads(4) schedule(static) // planted: imbalance
#endif
		for (int i = 0; i < N; i++) {
			int s = 0;
			for (int j = 0; j <= i; j++)
				s += a[i][j] * a[i][j];
			sum[i] += s;
		}
	}
	printf("%d\n", sum[77]);
}
