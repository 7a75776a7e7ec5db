#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static struct { long a, b; } counters __attribute__((aligned(64)));
static long *table;
static __attribute__((noinline)) long walk(long n) {
	long sum = 0;
	for (long i = 0; i < n; i += 512)
		sum += table[i];
	return sum;
}
static void *count(void *at) {
	volatile long *p = at;
	for (int i = 0; i < 1000000; i++)
		++*p;
	return 0;
}
int main(void) {
	pthread_t t;
	table = malloc(8 << 20);
	memset(table, 1, 8 << 20);
	long s = walk(1 << 20);
	pthread_create(&t, 0, count, &counters.a);
	count(&counters.b);
	pthread_join(t, 0);
	return s == 0;
}
