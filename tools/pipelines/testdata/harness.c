// Times the kernels: each between turns of a chain of multiplications, three cycles each,
// so that the time is in cycles of the clock that the core has just then.
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

typedef long kernel(long, double *, double *, double *, float *, float *, int *, int *, long *, long *);
struct entry {
	const char *name;
	kernel *run;
};
#define KERNEL(name) extern kernel name;
#include "kernels.h"
#undef KERNEL
#define KERNEL(name) {#name, name},
static const struct entry entries[] = {
#include "kernels.h"
};

#ifdef WHOLE_SIZE
enum { WHOLE = 1, SMALL = WHOLE_SIZE, LARGE = WHOLE_SIZE };
#else
enum { WHOLE = 0, SMALL = 768, LARGE = 1792 };
#endif
enum { ROUNDS = 7, SAMPLES = 21, CHAIN = 4000, REPEATS = WHOLE ? 4 : 16 };

// The arrays lie so that what is written has lower addresses in its page than what is
// read: else reads wait for writes of other pages whose addresses end alike.
enum { ROOM = WHOLE ? 40960 : 16384, BELOW = 128 };
static char room[10 * ROOM] __attribute__((aligned(4096)));
#define ARRAY(type, n) ((type *)(room + (n) * ROOM + 1280 - (n) * BELOW))
#define p ARRAY(long, 0)
#define i ARRAY(int, 1)
#define f ARRAY(float, 2)
#define a ARRAY(double, 3)
#define b ARRAY(double, 4)
#define c ARRAY(double, 5)
#define g ARRAY(float, 6)
#define j ARRAY(int, 7)
#define q ARRAY(long, 8)

// fill makes the values that all kernels can take: pointers into the array in one round
// for those that chase them.
static void fill(long n) {
	for (long k = 0; k < LARGE; k++) {
		a[k] = 1 + (double)(k * 7919 % 1000) / 1000;
		b[k] = 0.5 + (double)(k * 104729 % 1000) / 4000;
		c[k] = 0.25;
		f[k] = (float)a[k], g[k] = (float)b[k];
		i[k] = (int)(k * 611 % n), j[k] = 0;
		p[k] = k < n ? (k + 389) % n : 0, q[k] = WHOLE ? k : k * 31 % n;
	}
}

static unsigned long now(void) {
	unsigned int cpu;
	unsigned long t = __rdtscp(&cpu);
	_mm_lfence();
	return t;
}

static unsigned long chain(void) {
	unsigned long x = (unsigned long)rand() | 1, from = now();
	for (long k = 0; k < CHAIN; k++) __asm__ volatile("imulq %0, %0" : "+r"(x));
	return now() - from;
}

static unsigned long timed(kernel *run, long n) {
	unsigned long from = now();
	for (int k = 0; k < REPEATS; k++) run(n, a, b, c, f, g, i, j, p, q);
	return now() - from;
}

static int compare(const void *x, const void *y) {
	double d = *(const double *)x - *(const double *)y;
	return d < 0 ? -1 : d > 0;
}

// timing times a kernel: the median of what LARGE takes more than SMALL, or of all that it
// takes where functions as a whole are timed.
static double timing(kernel *run) {
	static double sample[SAMPLES];
	fill(WHOLE ? LARGE : SMALL);
	for (int k = 0; k < 10; k++) timed(run, SMALL), timed(run, LARGE), fill(WHOLE ? LARGE : SMALL);
	for (int s = 0; s < SAMPLES; s++) {
		timed(run, LARGE); // wide registers have to wake up
		unsigned long before = chain();
		timed(run, LARGE);
		unsigned long small = WHOLE ? 0 : timed(run, SMALL), large = timed(run, LARGE), after = chain();
		double cycle = (double)(before + after) / (2.0 * 3 * CHAIN);
		sample[s] = ((double)large - (double)small) / REPEATS / cycle;
	}
	qsort(sample, SAMPLES, sizeof *sample, compare);
	return sample[SAMPLES / 2];
}

// Other programs make it slower, seldom the chain beside it: of several rounds the fastest
// but one is printed, and the median.
int main(void) {
	enum { KERNELS = sizeof entries / sizeof *entries };
	static double best[KERNELS][ROUNDS];
	for (int r = 0; r < ROUNDS; r++)
		for (unsigned long e = 0; e < KERNELS; e++) best[e][r] = timing(entries[e].run);
	for (unsigned long e = 0; e < KERNELS; e++) {
		qsort(best[e], ROUNDS, sizeof **best, compare);
		printf("%s %.1f %.1f\n", entries[e].name, best[e][1], best[e][ROUNDS / 2]);
	}
}
