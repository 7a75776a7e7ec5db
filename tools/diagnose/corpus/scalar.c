// Scalar product, not optimised: the sum goes through memory.
// options: -O0
#include <stdio.h>
#define N 4000
static double a[N], b[N];

static double dot(void) {
#ifdef FIXED
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
	for (int i = 0; i < N; i += 4) {
		s0 += a[i] * b[i];
		s1 += a[i + 1] * b[i + 1];
		s2 += a[i + 2] * b[i + 2];
		s3 += a[i + 3] * b[i + 3];
	}
	return s0 + s1 + s2 + s3;
#else
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += a[i] * b[i]; // planted: compute
	return sum;
#endif
}

int main(void) {
	for (int i = 0; i < N; i++)
		a[i] = i, b[i] = 1.0 / (i + 1);
	double all = 0;
	for (int k = 0; k < 100; k++)
		all += dot();
	printf("%g\n", all);
}
