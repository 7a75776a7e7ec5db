// Threads that pass a token around. Only the thread with the token makes steps, so the
// order of all steps is always the same. The threads never end.
#include "play.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static unsigned token;
enum { threads = 3, rounds = 30 };

static void wait_for(unsigned mine)
{
	pthread_mutex_lock(&lock);
	while (token != mine)
		pthread_cond_wait(&passed, &lock);
	pthread_mutex_unlock(&lock);
}

static void pass(unsigned to)
{
	pthread_mutex_lock(&lock);
	token = to;
	pthread_cond_broadcast(&passed);
	pthread_mutex_unlock(&lock);
}

static void work(unsigned number, unsigned round)
{
	static uint64_t seed = 1;
	for (unsigned i = 0; i < 3000 * (number + 1) + 100 * round; i++)
		load(i % 5 ? seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407 : i);
	__sg_begin(round % 7 ? "often" : "seldom");
	load(round);
	__sg_end();
}

static void *run(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	for (unsigned round = 0; round < rounds; round++) {
		wait_for(number);
		work(number, round);
		pass((number + 1) % (threads + 1));
	}
	for (;;)
		pause();
}

int main(void)
{
	pthread_t t;
	for (uintptr_t i = 1; i <= threads; i++)
		pthread_create(&t, 0, run, (void *)i);
	for (unsigned round = 0; round < rounds; round++) {
		wait_for(0);
		work(0, round);
		pass(1);
	}
	wait_for(0);
	return 0;
}
