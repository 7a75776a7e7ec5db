// Gauss and Seidel's iteration in two colours, with rows in chunks of four.
#define N 98
#define STEPS 3

static double g[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			g[i][j] = (double)((i * 7 + j * 3) % 11);
	for (int t = 0; t < STEPS; t++) {
#pragma omp parallel
		for (int colour = 0; colour < 2; colour++) {
#pragma omp for schedule(static, 4)
			for (int i = 1; i < N - 1; i++)
				for (int j = 1 + (i + colour) % 2; j < N - 1; j += 2)
					g[i][j] = 0.25 * (g[i - 1][j] + g[i + 1][j] + g[i][j - 1] + g[i][j + 1]);
		}
	}
	return g[1][1] < 0;
}
