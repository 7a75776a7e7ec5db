// Calls in the place of a return, by jumps where the compiler makes such.
#include <stdio.h>

typedef int step(int, int);
static step one, two, three;
static step *const table[] = {one, two, three};

__attribute__((noinline)) static int one(int n, int sum)
{
	if (n <= 0)
		return sum;
	if (n % 2)
		return two(n - 1, sum + 1);
	return three(n - 1, sum + 3);
}
__attribute__((noinline)) static int two(int n, int sum)
{
	if (n % 5 == 0)
		printf("%d ", n);
	return table[n % 3](n - 2, sum ^ n);
}
__attribute__((noinline)) static int three(int n, int sum) { return n & 4 ? two(n - 1, sum) : one(n - 1, sum); }
__attribute__((noinline)) static int count(int n, int *at)
{
	if (n == 0)
		return *at;
	*at += n;
	return count(n - 1, at);
}

int main(void)
{
	int at = 0;
	printf("%d\n", one(100, 0) + count(30, &at) + count(at % 20, &at));
	return 0;
}
