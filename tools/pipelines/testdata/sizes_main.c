// Runs a kernel for a size: sizes KERNEL N once, to be traced; or, without the last word, many
// times, and prints the cycles that a run takes, the fastest but one.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "sizes.h"

char *room;

static const struct entry {
	const char *name;
	void (*prepare)(long), (*warm)(long), (*run)(long);
} entries[] = {
#define KERNEL(name) {#name, prepare_##name, warm_##name, run_##name},
	KERNELS
#undef KERNEL
};

enum { PAGE = 2 << 20, MOST = 99 };

int main(int argc, char **argv) {
	const struct entry *e = entries;
	if (argc < 3) return 1;
	while (strcmp(e->name, argv[1])) e++;
	long n = atol(argv[2]);
	room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	room = (char *)(((uintptr_t)room + PAGE - 1) / PAGE * PAGE);
	e->prepare(n);
	e->warm(n);
	e->run(n);
	if (argc > 3) return 0;
	static double sample[MOST];
	unsigned long once = now();
	e->run(n);
	once = now() - once;
	// Samples of 0.1 ms at least; half a second of them in all, but at least 9.
	long repeats = (long)(100000 / (once + 1)) + 1;
	int samples = (int)(500000000 / (once * (unsigned long)repeats + 1));
	samples = samples < 9 ? 9 : samples > MOST ? MOST : samples;
	unsigned long clock = chain();
	for (int s = 0; s < samples; s++) {
		unsigned long from = now();
		for (long k = 0; k < repeats; k++) e->run(n);
		sample[s] = (double)(now() - from) / (double)repeats;
		unsigned long again = chain();
		clock = again < clock ? again : clock; // what slows a chain down is no part of the clock
	}
	qsort(sample, (size_t)samples, sizeof *sample, ascending);
	printf("%.0f\n", sample[1] / cycle(clock, clock));
}
