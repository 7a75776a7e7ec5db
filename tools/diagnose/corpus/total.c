// All threads add to one total; the twin adds up each thread's own sum at the end.
#include <stdio.h>
#include <omp.h>
static long total;
static int data[400000];

int main(void) {
	for (int i = 0; i < 400000; i++)
		data[i] = i & 3;
	#pragma omp parallel num_threads(4)
	{
		int me = omp_get_thread_num();
#ifdef FIXED
		long own = 0;
		for (int i = 100000 * me; i < 100000 * me + 100000; i++)
			own += data[i];
		#pragma omp atomic
		total += own;
#else
		for (int i = 100000 * me; i < 100000 * me + 100000; i++)
			#pragma omp atomic
			total += data[i]; // planted: true-sharing
#endif
	}
	printf("%ld\n", total);
}
