// Two passes over the same arrays, one after the other, that could be one.
#include <stdio.h>
#define N 60000
static double x[N], y[N];

int main(void) {
	for (int i = 0; i < N; i++) {
		x[i] = i % 17;
		y[i] = i % 13;
	}
	for (int pass = 0; pass < 8; pass++) {
#ifdef FIXED
		for (int i = 0; i < N; i++) {
			x[i] = x[i] * 0.5 + 1;
			y[i] = y[i] + x[i];
		}
#else
		for (int i = 0; i < N; i++)
			x[i] = x[i] * 0.5 + 1;
		for (int i = 0; i < N; i++)
			y[i] = y[i] + x[i]; // planted: fusion
#endif
	}
	printf("%g\n", y[5]);
}
