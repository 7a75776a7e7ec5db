// Stands before LLVM's OpenMP runtime and gives the chunks of dynamic and guided loops to
// threads as if each had a processor of its own: the next one to the thread that has used
// the least time in the loop. A machine with fewer processors than threads would have some
// threads do nearly everything, which no program can foretell. Nothing here is traced.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { MOST = 64 };
enum state { OUTSIDE, WAITS, RUNS, DONE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct { enum state state; double used, since; } threads[MOST];

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int is_next(int me, int n) {
	for (int i = 0; i < n; i++) {
		if (threads[i].state == OUTSIDE || threads[i].state == RUNS)
			return 0;
		if (threads[i].state == WAITS && (threads[i].used < threads[me].used || threads[i].used == threads[me].used && i < me))
			return 0;
	}
	return 1;
}

int __kmpc_dispatch_next_4(void *where, int32_t gtid, int32_t *last, int32_t *from, int32_t *to, int32_t *step) {
	static int (*real)(void *, int32_t, int32_t *, int32_t *, int32_t *, int32_t *);
	int me = omp_get_thread_num(), n = omp_get_num_threads();
	double used = now();
	pthread_mutex_lock(&lock);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "__kmpc_dispatch_next_4");
	if (threads[me].state == RUNS)
		threads[me].used += used - threads[me].since;
	threads[me].state = WAITS;
	pthread_cond_broadcast(&changed);
	while (!is_next(me, n))
		pthread_cond_wait(&changed, &lock);
	int more = real(where, gtid, last, from, to, step);
	threads[me].state = more ? RUNS : DONE;
	int done = 0;
	for (int i = 0; i < n; i++)
		done += threads[i].state == DONE;
	if (done == n)
		for (int i = 0; i < n; i++) {
			threads[i].state = OUTSIDE;
			threads[i].used = 0;
		}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	threads[me].since = now();
	return more;
}
