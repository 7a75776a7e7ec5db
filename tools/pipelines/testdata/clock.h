// Times in cycles of the clock that the core has just then, whatever else the machine does.
#include <stdlib.h>
#include <time.h>

enum { CHAIN = 20000 };

// now is the time that this thread has had a processor for, in nanoseconds: other programs
// are not in it.
static unsigned long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

// chain is the time of a chain of multiplications, three cycles each.
static unsigned long chain(void) {
	unsigned long x = (unsigned long)rand() | 1, from = now();
	for (long k = 0; k < CHAIN; k++) __asm__ volatile("imulq %0, %0" : "+r"(x));
	return now() - from;
}

// cycle is how long one takes, of the chains before and after something. What slows down
// one of them is no part of the clock: the faster one counts.
static double cycle(unsigned long before, unsigned long after) {
	return (double)(before < after ? before : after) / (3.0 * CHAIN);
}

static int ascending(const void *x, const void *y) {
	double d = *(const double *)x - *(const double *)y;
	return (d > 0) - (d < 0);
}
