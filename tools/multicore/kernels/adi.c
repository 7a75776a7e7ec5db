// Alternating directions: lines of a grid are solved one by one, first rows, then columns.
// Columns put threads on the same lines of memory.
#define N 64
#define STEPS 2

static double u[N][N], v[N][N], p[N][N];

static void rows(void) {
#pragma omp parallel for
	for (int i = 1; i < N - 1; i++) {
		p[i][0] = 0;
		v[i][0] = 1;
		for (int j = 1; j < N - 1; j++) {
			p[i][j] = 1 / (4 - p[i][j - 1]);
			v[i][j] = (u[i - 1][j] + 2 * u[i][j] + u[i + 1][j] + v[i][j - 1]) * p[i][j];
		}
		for (int j = N - 2; j > 0; j--)
			v[i][j] += p[i][j] * v[i][j + 1];
	}
}

static void columns(void) {
#pragma omp parallel for
	for (int j = 1; j < N - 1; j++) {
		p[0][j] = 0;
		u[0][j] = 1;
		for (int i = 1; i < N - 1; i++) {
			p[i][j] = 1 / (4 - p[i - 1][j]);
			u[i][j] = (v[i][j - 1] + 2 * v[i][j] + v[i][j + 1] + u[i - 1][j]) * p[i][j];
		}
		for (int i = N - 2; i > 0; i--)
			u[i][j] += p[i][j] * u[i + 1][j];
	}
}

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			u[i][j] = (double)(i + j) / N;
	for (int t = 0; t < STEPS; t++) {
		rows();
		columns();
	}
	return u[N / 2][N / 2] < 0;
}
