#include <stdio.h>

enum { n = 24 };
double A[n][n], B[n][n], C[n][n];

static void init(void)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			A[i][j] = i + j;
			B[i][j] = i - j;
		}
}

void gemm(void)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			C[i][j] = 0;
			for (int k = 0; k < n; k++)
				C[i][j] += A[i][k] * B[k][j];
		}
}

int main(void)
{
	init();
	gemm();
	printf("%g %g\n", C[1][2], C[n - 1][n - 1]);
	return 3;
}
