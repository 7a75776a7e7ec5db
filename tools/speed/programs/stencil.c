// regular: sweeps of a stencil over a grid of 2 MB
#include <stdio.h>

#define N 512

static double a[N][N], b[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (i * 7 + j) % 13;
	for (int t = 0; t < 5; t++) {
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				b[i][j] = 0.2 * (a[i][j] + a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = b[i][j];
	}
	printf("%g\n", a[5][5]);
}
