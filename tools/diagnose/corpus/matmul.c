// A matrix product in the order of the textbook: the inner loop walks down a column.
#include <stdio.h>
#define N 160
static double a[N][N], b[N][N], c[N][N];

int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = i + j;
			b[i][j] = i - j;
		}
#ifdef FIXED
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
#else
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j]; // planted: stride
			c[i][j] = sum;
		}
#endif
	printf("%g\n", c[3][5]);
}
