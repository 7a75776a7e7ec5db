// An image filter in three passes over buffers beyond the second level.
#include <stdio.h>
#define N 400000
static float in[N], mid[N], out[N];

int main(void) {
	for (int i = 0; i < N; i++)
		in[i] = i % 255;
#ifdef FIXED
	for (int i = 0; i < N; i++) {
		mid[i] = in[i] * 0.5f;
		out[i] = mid[i] + in[i];
	}
#else
	for (int i = 0; i < N; i++)
		mid[i] = in[i] * 0.5f;
	for (int i = 0; i < N; i++)
		out[i] = mid[i] + in[i]; // planted: fusion
#endif
	printf("%g %g\n", out[77], mid[9]);
}
