// Gram and Schmidt's orthogonalization; columns behind the pivot are shared out.
#include <math.h>

#define M 48
#define N 40

static double a[M][N], q[M][N], r[N][N];

int main(void) {
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (double)((i * j + 1) % M) / M + (i == j);
	for (int k = 0; k < N; k++) {
		double norm = 0;
		for (int i = 0; i < M; i++)
			norm += a[i][k] * a[i][k];
		r[k][k] = sqrt(norm);
		for (int i = 0; i < M; i++)
			q[i][k] = a[i][k] / r[k][k];
#pragma omp parallel for
		for (int j = k + 1; j < N; j++) {
			r[k][j] = 0;
			for (int i = 0; i < M; i++)
				r[k][j] += q[i][k] * a[i][j];
			for (int i = 0; i < M; i++)
				a[i][j] -= q[i][k] * r[k][j];
		}
	}
	return r[N - 1][N - 1] < 0;
}
