// Jacobi's iteration on a grid. Four threads share the rows.
#include <omp.h>
enum { N = 514, STEPS = 14 };
static double a[N][N], b[N][N];
int main(void) {
#pragma omp parallel num_threads(4)
	for (int t = 0; t < STEPS; t++) {
#pragma omp for
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				b[i][j] = 0.2 * (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i - 1][j] + a[i + 1][j]);
#pragma omp for
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = b[i][j];
	}
	return 0;
}
