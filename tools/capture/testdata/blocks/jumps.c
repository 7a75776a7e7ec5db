// longjmp: out of calls, to its own function, out of recursion, out of a handler.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static jmp_buf outer, inner;
static sigjmp_buf handled;

__attribute__((noinline)) static int leave(int n)
{
	if (n % 5 == 4)
		longjmp(outer, n);
	if (n % 3 == 2)
		longjmp(inner, n);
	return n;
}
__attribute__((noinline)) static int between(int n) { return leave(n) + leave(n + 1); }
__attribute__((noinline)) static int deep(int depth, int n) { return depth == 0 ? between(n) : deep(depth - 1, n) + 1; }
__attribute__((noinline)) static int nested(volatile int n)
{
	volatile int tries = 0;
	if (setjmp(inner)) {
		if (++tries > 2)
			return -n;
		n++;
	}
	return deep(n % 4, n);
}
static void handler(int number) { siglongjmp(handled, number); }

int main(void)
{
	volatile long sum = 0;
	for (volatile int i = 0; i < 50; i++) {
		int n = setjmp(outer);
		if (n == 0)
			sum += nested(i);
		else if (n % 2)
			sum -= n;
		else
			continue;
	}
	signal(SIGUSR1, handler);
	for (volatile int i = 0; i < 5; i++) {
		if (sigsetjmp(handled, 1) == 0)
			raise(SIGUSR1);
		else
			sum += 1000;
	}
	printf("%ld\n", sum);
	return 0;
}
