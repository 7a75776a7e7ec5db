// Threads that hand a token around, by a lock: whoever holds it says so. The trace
// must have the numbers in order.
#include "play.h"

#include <pthread.h>
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t token;
enum { threads = 4, turns = 2000 };

static void *run(void *number)
{
	for (uint64_t mine = (uint64_t)(uintptr_t)number; mine < threads * turns;) {
		load(UINT64_C(1) << 40); // without the lock
		pthread_mutex_lock(&lock);
		if (token == mine) {
			load(token++);
			mine += threads;
		}
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	return 0;
}

int main(void)
{
	pthread_t t[threads];
	load(UINT64_C(1) << 40);
	for (uint64_t i = 0; i < threads; i++)
		pthread_create(&t[i], 0, run, (void *)(uintptr_t)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	return 0;
}
