// Averages of eight series, one after the other: each step needs the one before. The compiler unrolls the outer loop.
#include <stdio.h>
#define S 8
#define N 4000
static double x[S][N], y[S];

static void smooth(void) {
#ifdef FIXED
	double a[S] = {0};
	for (int i = 0; i < N; i++)
		for (int s = 0; s < S; s++)
			a[s] = a[s] * 0.9 + x[s][i];
	for (int s = 0; s < S; s++)
		y[s] += a[s];
#else
	for (int s = 0; s < S; s++) {
		double a = 0;
		for (int i = 0; i < N; i++)
			a = a * 0.9 + x[s][i]; // planted: compute
		y[s] += a;
	}
#endif
}

int main(void) {
	for (int s = 0; s < S; s++)
		for (int i = 0; i < N; i++)
			x[s][i] = s * i % 17;
	for (int k = 0; k < 10; k++)
		smooth();
	printf("%g\n", y[3]);
}
