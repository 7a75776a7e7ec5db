// Functions that the library calls, that are called by pointers, and for signals.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t seen;
static int compared;

static int up(const void *a, const void *b) { return compared++, (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }
static int down(const void *a, const void *b) { return *(const int *)a % 10 == 3 ? up(a, b) : -up(a, b); }
static void handler(int number)
{
	if (number == SIGUSR1 && ++seen < 3)
		raise(SIGUSR1);
}
static int twice(int n) { return 2 * n; }
static int thrice(int n) { return 3 * n; }

int main(void)
{
	int list[100], sum = 0;
	int (*const table[])(int) = {twice, thrice, abs};
	for (int i = 0; i < 100; i++)
		list[i] = i * 37 % 101;
	qsort(list, 100, sizeof *list, up);
	for (int i = 0; i < 30; i += 4)
		sum += bsearch(&i, list, 100, sizeof *list, up) != NULL;
	qsort(list, 100, sizeof *list, down);
	signal(SIGUSR1, handler);
	for (volatile int i = 0; i < 20; i++) {
		sum += table[i % 3](i - 9);
		if (i % 6 == 5)
			raise(SIGUSR1);
	}
	printf("%d %d %d %d\n", compared, list[0], sum, (int)seen);
	return 0;
}
