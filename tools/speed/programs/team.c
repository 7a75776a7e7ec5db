// threads: a stencil and a histogram by four threads of OpenMP
#include <omp.h>
#include <stdio.h>

#define N 512

static double a[N][N], b[N][N];
static long hits[4];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (i * 7 + j) % 13;
	for (int t = 0; t < 7; t++) {
#pragma omp parallel for num_threads(TEAM) schedule(static)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++) {
				b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
				if (b[i][j] > 6)
					hits[omp_get_thread_num()]++;
			}
#pragma omp parallel for num_threads(TEAM) schedule(static)
		for (int i = 1; i < N - 1; i++)
			for (int j = 1; j < N - 1; j++)
				a[i][j] = b[i][j];
	}
	printf("%g %ld\n", a[5][5], hits[0]);
}
