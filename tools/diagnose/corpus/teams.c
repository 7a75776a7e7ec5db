// Progress counters of nested teams, side by side.
#include <stdio.h>
#include <omp.h>
#ifdef FIXED
struct progress { _Alignas(64) volatile long done; };
#else
struct progress { volatile long done; };
#endif
static struct progress team[4];

static void work(int me) {
	for (int i = 0; i < 30000; i++)
		team[me].done += i; // planted: false-sharing
}

int main(void) {
	omp_set_max_active_levels(2);
	#pragma omp parallel num_threads(2)
	{
		int outer = omp_get_thread_num();
		#pragma omp parallel num_threads(2)
		work(2 * outer + omp_get_thread_num());
	}
	printf("%ld\n", team[0].done + team[1].done + team[2].done + team[3].done);
}
