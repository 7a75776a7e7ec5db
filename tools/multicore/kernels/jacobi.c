// Jacobi's iteration on a grid: a sweep into a copy, of which a part is taken back.
#define N 100
#define STEPS 3

static double a[N][N], b[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (double)i * (j + 2) / N;
	for (int t = 0; t < STEPS; t++) {
#pragma omp parallel
		{
#pragma omp for
			for (int i = 1; i < N - 1; i++)
				for (int j = 1; j < N - 1; j++)
					b[i][j] = 0.2 * (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i - 1][j] + a[i + 1][j]);
#pragma omp for
			for (int i = 1; i < N - 1; i++)
				for (int j = 1; j < N - 1; j++)
					a[i][j] += 0.9 * (b[i][j] - a[i][j]);
		}
	}
	return a[1][1] < 0;
}
