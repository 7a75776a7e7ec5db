// An interpreter that jumps to where a table says.
#include <stdio.h>

__attribute__((noinline)) static unsigned long interpret(const unsigned char *code, unsigned long n)
{
	static const void *const at[] = {&&push, &&add, &&twice, &&less, &&back, &&halt, &&nothing, &&nothing};
	unsigned long stack[16], top = 0, i = 0;
#define NEXT goto *at[code[i++] & 7]
	NEXT;
push:
	stack[top++] = n--;
	NEXT;
add:
	top--;
	stack[top - 1] += stack[top];
	NEXT;
twice:
	stack[top - 1] *= 2;
	NEXT;
less:
	if (stack[top - 1] > 1000)
		stack[top - 1] -= 999;
	NEXT;
back:
	if (n > 0)
		i = 1;
	NEXT;
nothing:
	NEXT;
halt:
	return stack[0];
}

int main(void)
{
	const unsigned char one[] = {0, 0, 1, 2, 6, 3, 4, 5}, two[] = {0, 0, 0, 1, 7, 1, 3, 4, 5};
	printf("%lu %lu\n", interpret(one, 300), interpret(two, 99));
	return 0;
}
