// Sums a table: every reference of its functions is known beforehand.
#include <stdio.h>

enum { N = 1000 };
volatile int table[N];
volatile short copies[N];

__attribute__((noinline)) void fill(void)
{
	for (int i = 0; i < N; i++)
		table[i] = i;
}

__attribute__((noinline)) int sum(void)
{
	int s = 0;
	for (int i = 0; i < N; i++)
		s += table[i];
	return s;
}

__attribute__((noinline)) void narrow(void)
{
	for (int i = 0; i < N; i++)
		copies[i] = (short)table[i];
}

__attribute__((noinline)) void bump(void)
{
	for (int i = 0; i < N; i++)
		__atomic_fetch_add(&table[i], 1, __ATOMIC_SEQ_CST);
}

int main(void)
{
	fill();
	narrow();
	bump();
	printf("%d\n", sum());
	return 3;
}
