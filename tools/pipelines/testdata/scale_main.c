// Times one call of a kernel on arrays that are in memory already, in cycles of the clock
// that the core has just then, as a chain of multiplications tells.
#define main program
#include SOURCE
#undef main
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double cycle(void)
{
	unsigned long x = 3;
	double from = now();
	for (int k = 0; k < 200000; k++)
		__asm__ volatile("imulq %0, %0" : "+r"(x));
	return (now() - from) / 600000;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 8;
	double *a = array(n), *b = array(n), *c = array(n), best = 1e300, clock = 1e300;
	for (long k = 0; k < n * n; k++)
		a[k] = b[k] = c[k] = (double)(k % 7);
	for (int s = 0; s < 5; s++) {
		double before = cycle(), from = now();
		RUN;
		double took = now() - from, after = cycle();
		best = took < best ? took : best;
		clock = before < clock ? before : clock; // what slows a chain down is no part of the clock
		clock = after < clock ? after : clock;
	}
	printf("%.0f\n", best / clock);
	return argc > 2 ? (int)(a[0] + c[0]) : 0;
}
