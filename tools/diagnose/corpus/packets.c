// Records as they come from the wire: packed, so that fields lie across lines.
// options: -O3
#include <stdio.h>
#include <stdlib.h>
#define N 3000
#ifdef FIXED
#define PACKED
#else
#define PACKED __attribute__((packed))
#endif
struct PACKED packet {
	char kind;
	double time, from[2], to[2];
	short port;
};

static double total(const struct packet *all, double since) {
	double sum = 0;
	for (int i = 0; i < N; i++)
		if (all[i].kind)
			sum += (all[i].time - since) * (all[i].from[0] - all[i].to[0]) * (all[i].from[1] - all[i].to[1]); // planted: alignment
	return sum;
}

int main(void) {
	struct packet *all = aligned_alloc(64, (N * sizeof *all + 63) & ~63ul);
	for (int i = 0; i < N; i++) {
		all[i].kind = i & 1;
		all[i].time = i;
		all[i].from[0] = all[i].to[1] = i % 7;
		all[i].from[1] = all[i].to[0] = i % 5;
	}
	double sum = 0;
	for (int pass = 0; pass < 60; pass++)
		sum += total(all, pass);
	printf("%g\n", sum);
}
