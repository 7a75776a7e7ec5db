// Calls interrupted() once for each of its instructions, and sends a signal exactly before that
// instruction. The processor traps after every instruction, and the trap's handler counts them. While
// the runtime holds signals back, nothing is counted, and the program runs at full speed.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "abi.h"

void interrupted(int times), handler(int times), inner(int times);

// What the program and its handlers do.
static int room = -1;    // words of room in the buffer when interrupted() begins; -1: any
static int stale;        // every ticket is invalid when interrupted() or a handler begins
static int fills;        // the handler, or the inner handler, fills the buffer
static int nests;        // the handler is itself interrupted
static int jumps;        // the handler leaves by siglongjmp
static int times;        // number of iterations in each function
static int stride = 1;   // only every so many instructions are interrupted

static struct level {
	long left; // instructions until the signal
	int signal;
} levels[] = {{0, SIGUSR1}, {0, SIGHUP}}, *level = levels;
static volatile sig_atomic_t begins, sent;
static long handlers, inners;
static sigjmp_buf again;

enum { trap_flag = 0x100 };

static void trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *flags = &u->uc_mcontext.gregs[REG_EFL];
	(void)number;
	if (info->si_code == SI_KERNEL) { // int3
		*flags = begins ? *flags | trap_flag : *flags & ~trap_flag;
		begins = 0;
	} else if (sigismember(&u->uc_sigmask, SIGHUP)) {
		*flags &= ~trap_flag;
		raise(SIGUSR2); // which is delivered when the runtime no longer holds signals back
	} else if (level->left-- == 0) {
		*flags &= ~trap_flag;
		sent = 1;
		raise(level->signal); // which is delivered when this handler returns
	}
}

static void resume(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

// Reports whether the signal was sent before the function returned.
static int step_through(void (*function)(int), long instruction)
{
	level->left = instruction;
	sent = 0;
	begins = 1;
	__asm__ volatile("int3" ::: "memory");
	function(times);
	__asm__ volatile("int3" ::: "memory");
	return sent;
}

static void fill_up(int left)
{
	while (__sg_thread.cursor + left < __sg_thread.end)
		*__sg_reserve(1) = SG_UNUSED;
}

static void interrupt_inner(int number)
{
	(void)number;
	inners++;
	if (fills)
		fill_up(0);
	inner(times);
}

static long inner_instruction;
static int inner_sent;

static void interrupt(int number)
{
	(void)number;
	handlers++;
	if (stale)
		__sg_clock++;
	if (fills && !nests)
		fill_up(0);
	if (nests) {
		level++;
		inner_sent = step_through(handler, inner_instruction);
		level--;
		sent = 1;
	} else {
		handler(times);
	}
	if (jumps)
		siglongjmp(again, 1);
}

static int one_round(long instruction)
{
	if (room >= 0)
		fill_up(room);
	if (stale)
		__sg_clock++;
	if (jumps && sigsetjmp(again, 1) != 0) {
		interrupted(times);
		return 1;
	}
	return step_through(interrupted, instruction);
}

static void handle(int number, void (*action)(int, siginfo_t *, void *), int all)
{
	struct sigaction a = {.sa_sigaction = action, .sa_flags = SA_SIGINFO};
	if (all)
		sigfillset(&a.sa_mask);
	sigaction(number, &a, 0);
}

int main(int argc, char **argv)
{
	long rounds = 2, instruction = 0;
	handle(SIGTRAP, trap, 1);
	handle(SIGUSR2, resume, 1);
	signal(SIGUSR1, interrupt);
	signal(SIGHUP, interrupt_inner);
	for (int i = 1; i < argc; i++) {
		stale |= strcmp(argv[i], "stale") == 0;
		fills |= strcmp(argv[i], "fills") == 0;
		nests |= strcmp(argv[i], "nests") == 0;
		jumps |= strcmp(argv[i], "jumps") == 0;
		if (strncmp(argv[i], "room=", 5) == 0)
			room = atoi(argv[i] + 5);
		if (strncmp(argv[i], "stride=", 7) == 0)
			stride = atoi(argv[i] + 7);
	}
	times = nests ? 1 : 2;
	interrupted(times);
	handler(times);
	inner(times);
	for (; one_round(instruction); rounds++) {
		if (!nests || !inner_sent)
			instruction += stride;
		inner_instruction = nests && inner_sent ? inner_instruction + stride : instruction / stride % stride;
	}
	printf("%ld %ld %ld %ld\n", rounds, handlers + 1, inners + 1, instruction);
	return 0;
}
