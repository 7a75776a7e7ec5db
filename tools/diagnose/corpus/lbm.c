// D2Q9 lattice, one plane for each direction.
#include <stdio.h>
#define N 128
#ifdef FIXED
#define PLANE (N * N + 72)
#else
#define PLANE (N * N)
#endif
static double src[9][PLANE] __attribute__((aligned(4096))), dst[9][PLANE] __attribute__((aligned(4096)));
static const double w[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

static void collide(double (*f)[PLANE], double (*g)[PLANE]) {
	for (int c = 0; c < N * N; c++) {
		double rho = 0;
		for (int q = 0; q < 9; q++)
			rho += f[q][c];
		for (int q = 0; q < 9; q++)
			g[q][c] = f[q][c] + 0.6 * (w[q] * rho - f[q][c]); // planted: conflict
	}
}

int main(void) {
	for (int q = 0; q < 9; q++)
		for (int c = 0; c < N * N; c++) src[q][c] = w[q] * (1 + c % 5);
	for (int t = 0; t < 6; t++) {
		collide(src, dst);
		collide(dst, src);
	}
	printf("%g\n", src[3][100]);
	return 0;
}
