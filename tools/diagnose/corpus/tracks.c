// Sixteen tracks of one page each, mixed sample by sample: all samples of one time share a set.
#include <stdio.h>
#define TRACKS 16
#define SAMPLES 1024
#ifdef FIXED
#define PITCH (SAMPLES + 16)
#else
#define PITCH SAMPLES
#endif
static int track[TRACKS][PITCH] __attribute__((aligned(4096)));
static int mixed[SAMPLES];

static void mix(int gain) {
	for (int t = 0; t < SAMPLES; t++) {
		int sum = 0;
		#pragma clang loop vectorize(disable) unroll(disable)
		for (int n = 0; n < TRACKS; n++)
			sum += track[n][t] * gain; // planted: conflict
		mixed[t] = sum;
	}
}

int main(void) {
	for (int n = 0; n < TRACKS; n++)
		for (int t = 0; t < SAMPLES; t++)
			track[n][t] = n * t;
	for (int step = 0; step < 40; step++)
		mix(step);
	printf("%d\n", mixed[9]);
}
