// Four passes over the same data, each bound by its sum.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef FIXED
__attribute__((noinline)) static void moments(const double *x, int n, double *sum, double *sq, double *lo, double *hi) {
	double s = 0, q = 0, l = x[0], h = x[0];
	for (int i = 0; i < n; i++) {
		s += x[i]; q += x[i] * x[i];
		if (x[i] < l) l = x[i];
		if (x[i] > h) h = x[i];
	}
	*sum = s; *sq = q; *lo = l; *hi = h;
}
#else
static double sum(const double *x, int n) {
	double s = 0;
	for (int i = 0; i < n; i++) s += x[i];
	return s;
}
static double squares(const double *x, int n) {
	double s = 0;
	for (int i = 0; i < n; i++) s += x[i] * x[i]; // planted: fusion
	return s;
}
static double least(const double *x, int n) {
	double s = x[0];
	for (int i = 0; i < n; i++) if (x[i] < s) s = x[i];
	return s;
}
static double most(const double *x, int n) {
	double s = x[0];
	for (int i = 0; i < n; i++) if (x[i] > s) s = x[i];
	return s;
}
#endif

int main(void) {
	int n = 700000;
	double *x = malloc(n * sizeof *x), s, q, l, h;
	for (int i = 0; i < n; i++) x[i] = (i * 37) % 1001 - 500;
#ifdef FIXED
	moments(x, n, &s, &q, &l, &h);
#else
	s = sum(x, n); q = squares(x, n); l = least(x, n); h = most(x, n);
#endif
	printf("%g %g %g %g\n", s, q, l, h);
	return 0;
}
