// Functions that call themselves and each other.
#include <stdio.h>

__attribute__((noinline)) static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__attribute__((noinline)) static int ackermann(int m, int n)
{
	if (m == 0)
		return n + 1;
	return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static int odd(unsigned n);
__attribute__((noinline)) static int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) static int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) static unsigned hanoi(int n, int from, int to)
{
	if (n == 0)
		return 0;
	int by = 3 - from - to;
	return hanoi(n - 1, from, by) + 1 + hanoi(n - 1, by, to);
}

int main(void)
{
	printf("%d %d %d %d %u\n", fibonacci(15), ackermann(2, 6), even(1001), odd(401), hanoi(8, 0, 2));
	return 0;
}
