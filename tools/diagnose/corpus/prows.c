// Columns of a matrix of row pointers: two loops over each.  options: -O2 -fno-math-errno
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

static double **alloc2d(int n, int m) {
	double **r = malloc(n * sizeof *r);
	for (int i = 0; i < n; i++) {
		r[i] = malloc(m * sizeof **r);
		for (int j = 0; j < m; j++) r[i][j] = 1 + (i * 7 + j * 3) % 11;
	}
	return r;
}

static void normalize(double **a, int n, int m) {
#ifdef FIXED
	double *norm = calloc(m, sizeof *norm);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++) norm[j] += a[i][j] * a[i][j];
	for (int j = 0; j < m; j++) norm[j] = 1 / sqrt(norm[j]);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++) a[i][j] *= norm[j];
	free(norm);
#else
	for (int j = 0; j < m; j++) {
		double s = 0;
		for (int i = 0; i < n; i++)
			s += a[i][j] * a[i][j]; // planted: stride
		s = 1 / sqrt(s);
		for (int i = 0; i < n; i++)
			a[i][j] *= s;
	}
#endif
}

int main(void) {
	int n = 2000, m = 500;
	double **a = alloc2d(n, m);
	normalize(a, n, m);
	double t = 0;
	for (int i = 0; i < n; i += 3) t += a[i][i % m];
	printf("%g\n", t);
	return 0;
}
