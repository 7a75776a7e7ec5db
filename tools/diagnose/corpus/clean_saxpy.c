// clean: a kernel on vectors that stay in the first level.
#include <stdio.h>
#define N 1500
static float x[N], y[N];

int main(void) {
	for (int i = 0; i < N; i++)
		x[i] = i;
	for (int pass = 0; pass < 500; pass++)
		for (int i = 0; i < N; i++)
			y[i] += 0.5f * x[i];
	printf("%g\n", y[9]);
}
