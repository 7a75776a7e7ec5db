// Recursion that needs no stack: calls right before a return, which an optimising
// compiler makes jumps. So deep, it would overflow the stack otherwise.
#include <stdio.h>

#ifdef __OPTIMIZE__
enum { deep = 3000000 };
#else
enum { deep = 300 };
#endif

static long depth;
__attribute__((noinline)) int odd(long n);

// It shares its return with the end of the recursion.
__attribute__((noinline)) int even(long n)
{
	depth++;
	return n == 0 ? 1 : odd(n - 1);
}

__attribute__((noinline)) int odd(long n)
{
	depth++;
	if (n == 0)
		return 0;
	return n % 3 ? even(n - 1) : odd(n - 2);
}

// An interpreter whose instructions go on with the next one.
typedef void instruction(const char *pc, long *acc);
static instruction add, twice, again, stop;
static instruction *const table[] = {add, twice, again, stop};

__attribute__((noinline)) static void add(const char *pc, long *acc)
{
	++*acc;
	table[*pc](pc + 1, acc);
}

__attribute__((noinline)) static void twice(const char *pc, long *acc)
{
	*acc = *acc * 2 % 1000003;
	table[*pc](pc + 1, acc);
}

__attribute__((noinline)) static void again(const char *pc, long *acc)
{
	if (acc[1]-- > 0)
		table[*(pc - 4)](pc - 3, acc);
	else
		table[*pc](pc + 1, acc);
}

static void stop(const char *pc, long *acc) { acc[1] = *pc; }

// All its returns are such calls.
__attribute__((noinline)) int left(long n, int *seen);
__attribute__((noinline)) int right(long n, int *seen);
__attribute__((noinline)) int leave(long n, int *seen) { return seen[n & 1]; }

__attribute__((noinline)) int left(long n, int *seen)
{
	seen[0]++;
	switch (n % 7) {
	case 0:
		return n == 0 ? leave(n, seen) : right(n - 1, seen);
	case 3:
		return left(n - 1, seen);
	default:
		return right(n - 1, seen);
	}
}

__attribute__((noinline)) int right(long n, int *seen)
{
	seen[1]++;
	return n == 0 ? leave(n + 1, seen) : left(n - 1, seen);
}

int main(void)
{
	static const char code[] = {0, 1, 0, 2, 3, 9};
	long acc[2] = {1, deep};
	int seen[2] = {0, 0};
	printf("%d %d %ld\n", even(deep), odd(deep), depth);
	add(code, acc);
	printf("%ld %ld\n", acc[0], acc[1]);
	printf("%d %d %d\n", left(deep, seen), seen[0], seen[1]);
	return 0;
}
