// The instrumented part of a program that signals interrupt at every instruction (stepping.c).

volatile long by_program[4], by_handler[4], by_inner[4];

static __attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }

// Its steps have between zero and three values.
void interrupted(int times)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < times; i++) {
		by_program[i] = by_program[i + 2];
		nothing();
		by_program[3] = by_program[0];
		by_program[2];
	}
	nothing();
}

void handler(int times)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < times; i++)
		by_handler[i + 2] = by_handler[i];
}

void inner(int times)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < times; i++)
		by_inner[i] = by_inner[i + 1];
}
