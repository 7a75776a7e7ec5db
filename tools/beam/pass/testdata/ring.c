// A ring of threads: each thread reads the buffer that another thread wrote, and writes its own.
#include <omp.h>
enum { N = 4096, ROUNDS = 640, THREADS = 4 };
static long buffer[2][THREADS][N];
int main(void) {
#pragma omp parallel num_threads(THREADS)
	{
		int me = omp_get_thread_num();
		for (int r = 0; r < ROUNDS; r++) {
			long *to = buffer[r & 1][me], *from = buffer[~r & 1][(me + 1) % THREADS];
			for (int i = 0; i < N; i++)
				to[i] = from[i] + i;
#pragma omp barrier
		}
	}
	return 0;
}
