// A transposed times A times x: rows are shared out first, then columns.
#define M 90
#define N 110

static double a[M][N], x[N], y[N], t[M];

int main(void) {
	for (int j = 0; j < N; j++)
		x[j] = 1 + (double)j / N;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (double)((i + j) % N) / M;
#pragma omp parallel
	{
#pragma omp for
		for (int i = 0; i < M; i++) {
			t[i] = 0;
			for (int j = 0; j < N; j++)
				t[i] += a[i][j] * x[j];
		}
#pragma omp for
		for (int j = 0; j < N; j++) {
			y[j] = 0;
			for (int i = 0; i < M; i++)
				y[j] += a[i][j] * t[i];
		}
	}
	return y[N - 1] < 0;
}
