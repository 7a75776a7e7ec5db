// Each of twelve queries goes over all of the data.
#include <stdio.h>
#define N 400000
#define B 5000
static int x[N], m[N], f[12];

int main(void) {
	for (int i = 0; i < N; i++) {
		x[i] = i;
		m[i] = 1 + i % 3;
	}
#ifdef FIXED
	for (int jj = 0; jj < N; jj += B)
		for (int i = 0; i < 12; i++)
			for (int j = jj; j < jj + B; j++)
				f[i] += m[j] ^ (x[j] + i);
#else
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < N; j++)
			f[i] += m[j] ^ (x[j] + i); // planted: capacity
#endif
	printf("%d\n", f[4]);
}
