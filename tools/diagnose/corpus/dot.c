// A sum in one chain of floating-point additions.
#include <stdio.h>
#define N 2000
static double x[N], y[N];

int main(void) {
	double sum = 0;
	for (int i = 0; i < N; i++) {
		x[i] = i;
		y[i] = 1.0 / (i + 1);
	}
	for (int pass = 0; pass < 300; pass++) {
#ifdef FIXED
		double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
		for (int i = 0; i < N; i += 8) {
			s0 += x[i] * y[i];
			s1 += x[i + 1] * y[i + 1];
			s2 += x[i + 2] * y[i + 2];
			s3 += x[i + 3] * y[i + 3];
			s4 += x[i + 4] * y[i + 4];
			s5 += x[i + 5] * y[i + 5];
			s6 += x[i + 6] * y[i + 6];
			s7 += x[i + 7] * y[i + 7];
		}
		sum += s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
#else
		for (int i = 0; i < N; i++)
			sum += x[i] * y[i]; // planted: compute
#endif
	}
	printf("%g\n", sum);
}
