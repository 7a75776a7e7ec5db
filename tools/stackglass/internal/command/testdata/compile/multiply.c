// C = A·B of N × N doubles by the definition, with known numbers of everything.
#include <string.h>

static double A[N][N], B[N][N], C[N][N];

static void multiply(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			for (int k = 0; k < N; k++)
				C[i][j] += A[i][k] * B[k][j];
}

int main(void) {
	memset(C, 0, sizeof C);
	multiply();
	return 0;
}
