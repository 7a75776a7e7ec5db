// Two threads, one after the other, and then two at once; the last two take turns.
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

enum { N = 2000 };
volatile int first[N], second[N];
static int turn;

static void *one(void *table)
{
	volatile int *t = table;
	for (int i = 0; i < N; i++)
		t[i] = i;
	return 0;
}

static void *relay(void *parity)
{
	for (int i = 0; i < 100; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) % 2 != (int)(intptr_t)parity)
			sched_yield();
		second[i]++;
		__atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

int main(void)
{
	pthread_t a, b;
	pthread_create(&a, 0, one, (void *)first);
	pthread_join(a, 0);
	pthread_create(&a, 0, one, (void *)second);
	pthread_join(a, 0);
	pthread_create(&a, 0, relay, (void *)0);
	pthread_create(&b, 0, relay, (void *)1);
	pthread_join(a, 0);
	pthread_join(b, 0);
	return 0;
}
