// Fast Fourier transforms of the rows and the columns of n × n complex numbers; n is given, and is a
// power of two.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct complex {
	double re, im;
};

static void transform(struct complex *a, long n, long stride)
{
	for (long i = 1, j = 0; i < n; i++) {
		long bit = n / 2;
		for (; j & bit; bit /= 2)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			struct complex other = a[i * stride];
			a[i * stride] = a[j * stride];
			a[j * stride] = other;
		}
	}
	for (long length = 2; length <= n; length *= 2) {
		double angle = -6.283185307179586 / (double)length;
		for (long i = 0; i < n; i += length)
			for (long k = 0; k < length / 2; k++) {
				double re = cos(angle * (double)k), im = sin(angle * (double)k);
				struct complex *x = &a[(i + k) * stride], *y = &a[(i + k + length / 2) * stride];
				struct complex v = {y->re * re - y->im * im, y->re * im + y->im * re}, u = *x;
				*x = (struct complex){u.re + v.re, u.im + v.im};
				*y = (struct complex){u.re - v.re, u.im - v.im};
			}
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	struct complex *a = malloc((size_t)(n * n) * sizeof *a);
	for (long i = 0; i < n * n; i++)
		a[i] = (struct complex){(double)(i % 13), 0};
	for (long i = 0; i < n; i++)
		transform(a + i * n, n, 1);
	for (long i = 0; i < n; i++)
		transform(a + i, n, n);
	printf("%g\n", a[n + 1].re);
	free(a);
	return 0;
}
