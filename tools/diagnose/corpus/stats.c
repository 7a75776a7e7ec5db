// Counters of POSIX threads, one structure for each, side by side.
#include <pthread.h>
#include <stdio.h>
struct stat {
	long hits, misses;
#ifdef FIXED
	char apart[112];
#endif
};
static struct stat stats[3];
static volatile unsigned char bytes[16384];

static void *scan(void *of) {
	struct stat *s = of;
	for (int run = 0; run < 2; run++)
		for (int i = 0; i < 16384; i++)
			if (bytes[i] & 1) // planted: false-sharing
				__atomic_store_n(&s->hits, s->hits + 1, __ATOMIC_RELAXED);
			else
				__atomic_store_n(&s->misses, s->misses + 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(void) {
	pthread_t thread[3];
	for (int i = 0; i < 16384; i++)
		bytes[i] = i * 7 % 5;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, scan, &stats[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", stats[0].hits + stats[2].misses);
}
