// One pass over data that are far larger than the caches.
#include <stdio.h>
#include <stdlib.h>
#ifdef FIXED
typedef unsigned char item;
#else
typedef double item;
#endif
#define N 3000000

int main(void) {
	item *x = calloc(N, sizeof *x);
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += x[i]; // planted: streaming
	printf("%g\n", sum);
}
