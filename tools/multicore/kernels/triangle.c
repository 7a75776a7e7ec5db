// The lower half of a matrix times its transpose; rows grow longer, and come in chunks
// that grow shorter.
#define N 56
#define M 40

static double a[N][M], c[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int k = 0; k < M; k++)
			a[i][k] = (double)(i * k % M) / M;
#pragma omp parallel for schedule(guided)
	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++) {
			c[i][j] = 0;
			for (int k = 0; k < M; k++)
				c[i][j] += a[i][k] * a[j][k];
		}
	return c[N - 1][0] < 0;
}
