// LU factorization: rows below the pivot are shared out, fewer with each pivot.
#define N 56

static double a[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = 1.0 / (i + j + 1) + (i == j) * N;
	for (int k = 0; k < N; k++) {
#pragma omp parallel for
		for (int i = k + 1; i < N; i++) {
			a[i][k] /= a[k][k];
			for (int j = k + 1; j < N; j++)
				a[i][j] -= a[i][k] * a[k][j];
		}
	}
	return a[N - 1][N - 1] < 0;
}
