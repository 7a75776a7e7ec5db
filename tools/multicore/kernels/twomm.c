// Two products of matrices, one after the other: D = A B C + D.
#define N 36

static double a[N][N], b[N][N], c[N][N], d[N][N], t[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = (double)(i * j % N) / N;
			b[i][j] = (double)(i * (j + 1) % N) / N;
			c[i][j] = (double)((i + 3) * j % N) / N;
			d[i][j] = (double)(i * (j + 2) % N) / N;
		}
#pragma omp parallel
	{
#pragma omp for
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				t[i][j] = 0;
				for (int k = 0; k < N; k++)
					t[i][j] += 1.5 * a[i][k] * b[k][j];
			}
#pragma omp for
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				d[i][j] *= 1.2;
				for (int k = 0; k < N; k++)
					d[i][j] += t[i][k] * c[k][j];
			}
	}
	return d[0][0] < 0;
}
