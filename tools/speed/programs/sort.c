// irregular: a merge sort of random numbers
#include <stdio.h>

#define N 300000

static unsigned numbers[N], spare[N];

static void sort(int from, int to) {
	if (to - from < 2)
		return;
	int middle = from + (to - from) / 2;
	sort(from, middle);
	sort(middle, to);
	for (int i = from, a = from, b = middle; i < to; i++)
		spare[i] = b == to || (a < middle && numbers[a] <= numbers[b]) ? numbers[a++] : numbers[b++];
	for (int i = from; i < to; i++)
		numbers[i] = spare[i];
}

int main(void) {
	unsigned state = 5;
	for (int i = 0; i < N; i++)
		numbers[i] = state = state * 1664525u + 1013904223u;
	sort(0, N);
	printf("%u\n", numbers[5]);
}
