// Producer and consumer: their positions share a line.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#define SIZE 4096
#define ITEMS 150000
static struct {
	unsigned made;
#ifdef FIXED
	char pad[128];
#endif
	unsigned used;
} stats;
static unsigned buf[2][SIZE];

static void *produce(void *x) {
	for (unsigned i = 0; i < ITEMS; i++) {
		buf[0][i % SIZE] = i;
		(*(volatile unsigned *)&stats.made)++; // planted: false-sharing
	}
	return x;
}
static void *consume(void *x) {
	unsigned s = 0;
	for (unsigned i = 0; i < ITEMS; i++) {
		s += buf[1][i % SIZE];
		(*(volatile unsigned *)&stats.used)++;
	}
	return (void *)(long)s;
}
int main(void) {
	pthread_t a, b;
	pthread_create(&a, NULL, produce, NULL);
	pthread_create(&b, NULL, consume, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%u\n", stats.made + stats.used);
	return 0;
}
