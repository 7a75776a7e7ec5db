// What times the probes that tune.go writes: between turns of a chain of multiplications,
// three cycles each, so that times are in cycles of the clock that the core has just then.
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define CLOBBERS                                                                                  \
	"rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",      \
	    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",  \
	    "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "k1", "memory", "cc"

enum { TURNS = 200, SAMPLES = 101, CHAIN = 3000 };

__attribute__((used)) static double doubles[16];
__attribute__((used)) static float floats[16];
__attribute__((used, aligned(64))) static void *self, *more[127];

// fill makes numbers with all their digits, for some make divisions short.
static void fill(void) {
	for (int k = 0; k < 16; k++) {
		doubles[k] = 1 + (double)((k + 1) * 6180339887498949 % 10000000000000000) / 1e16;
		floats[k] = (float)doubles[k];
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

static unsigned long timed(void (*run)(long), long n) {
	self = &self; // what stores wrote over
	unsigned long from = now();
	run(n);
	return now() - from;
}

static int compare(const void *x, const void *y) {
	double d = *(const double *)x - *(const double *)y;
	return d < 0 ? -1 : d > 0;
}

// report prints the cycles that a turn takes.
static void report(const char *name, void (*run)(long)) {
	double sample[SAMPLES];
	timed(run, TURNS);
	for (int s = 0; s < SAMPLES; s++) {
		unsigned long before = chain(), few = timed(run, TURNS), many = timed(run, 3 * TURNS), after = chain();
		sample[s] = ((double)many - (double)few) / (2 * TURNS) / ((double)(before + after) / (2.0 * 3 * CHAIN));
	}
	qsort(sample, SAMPLES, sizeof *sample, compare);
	printf("%s %.3f\n", name, sample[SAMPLES / 2]);
}
