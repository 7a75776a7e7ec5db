// clean: a matrix product in tiles that fit in the first level.
#include <stdio.h>
#define N 128
#define T 32
static double a[N][N], b[N][N], c[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = b[i][j] = i + j;
	for (int ii = 0; ii < N; ii += T)
		for (int kk = 0; kk < N; kk += T)
			for (int i = ii; i < ii + T; i++)
				for (int k = kk; k < kk + T; k++)
					for (int j = 0; j < N; j++)
						c[i][j] += a[i][k] * b[k][j];
	printf("%g\n", c[3][4]);
}
