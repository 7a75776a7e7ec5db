// A triad on vectors that were filled just before, and are larger than the caches; in the fixed program they are short.
// options: -O3
#include <stdio.h>
#ifdef FIXED
typedef float real;
#define N 60000
#else
typedef double real;
#define N 1600000
#endif
static real a[N], b[N], c[N];

int main(void) {
	for (long i = 0; i < N; i++) {
		b[i] = i;
		c[i] = 2 * i;
	}
	for (long i = 0; i < N; i++)
		a[i] = b[i] + 3 * c[i]; // planted: streaming
	printf("%f\n", (double)a[5]);
}
