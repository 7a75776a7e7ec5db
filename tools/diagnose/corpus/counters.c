// A counter for each thread, side by side in one line.
#include <stdio.h>
#include <omp.h>
#ifdef FIXED
static struct { _Alignas(64) long n; } hits[4];
#else
static struct { long n; } hits[4];
#endif

int main(void) {
	#pragma omp parallel num_threads(4)
	{
		int me = omp_get_thread_num();
		for (volatile int i = 0; i < 20000; i++)
			if (i % 3)
				*(volatile long *)&hits[me].n += 1; // planted: false-sharing
	}
	printf("%ld\n", hits[0].n + hits[1].n + hits[2].n + hits[3].n);
}
