// The end comes in the middle of a block, below some calls; others are still called.
#include <stdio.h>
#include <stdlib.h>

static int calls;

static void first(void) { printf("%d\n", calls); }
static void second(void)
{
	for (int i = 0; i < 3; i++)
		calls += i;
}

__attribute__((noinline)) static int stops(int n)
{
	calls++;
	if (n == 77)
		exit(calls % 50 + 1);
	return n * 2;
}
__attribute__((noinline)) static int work(int n) { return stops(n) + stops(n + 1) * stops(n + 2); }

int main(void)
{
	atexit(first);
	atexit(second);
	volatile long sum = 0;
	for (int i = 0; i < 100; i++)
		sum += work(i) + work(i / 2);
	return 99;
}
