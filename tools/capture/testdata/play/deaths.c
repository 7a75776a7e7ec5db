// Loads a hundred numbers in order, and then something happens to it that its
// argument names.
#include "play.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

static void loads(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		load(i);
}

// ---- signals of the kernel's own

static void wait_for_alarm(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 1000}}, 0);
	pause();
}

static void compute_until(int which)
{
	setitimer(which, &(struct itimerval){{0, 0}, {0, 1000}}, 0);
	for (volatile uint64_t i = 0; i < UINT64_C(1) << 36; i++)
		;
}


// ---- alternate stacks

static void ignore(int number) { (void)number; }

// As short as programs make them, with nothing behind.
static void die_on_short_stack(void)
{
	enum { bytes = 8192 };
	char *room = mmap(0, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(room, bytes, PROT_NONE);
	sigaltstack(&(stack_t){.ss_sp = room + bytes, .ss_size = bytes}, 0);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ignore, .sa_flags = SA_ONSTACK}, 0);
	raise(SIGUSR1);
	raise(SIGTERM);
}

static void use_much_stack(int number)
{
	volatile char room[4 << 20];
	for (size_t i = 0; i < sizeof room; i += 1024)
		room[i] = (char)number;
}

static void handle_without_stack(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = use_much_stack, .sa_flags = SA_ONSTACK}, 0);
	raise(SIGUSR1);
}

// ---- forks

static void fork_often(void)
{
	for (uint64_t i = 0; i < 10; i++) {
		if (fork() == 0)
			_exit(0);
		wait(0);
		loads(100 + i, 1);
	}
}

// ---- threads that begin late

static pthread_key_t late;
static int rounds_before;

// Its first loads are made in one of the last rounds of destructors.
static void load_late(void *round)
{
	if ((intptr_t)round < rounds_before)
		pthread_setspecific(late, (void *)((intptr_t)round + 1));
	else
		loads(1000, 10);
}

static void *set_late(void *nothing)
{
	pthread_setspecific(late, (void *)1);
	return nothing;
}

// Stacks of this size are unmapped when their threads end.
static void begin_late(int rounds)
{
	pthread_t t[20];
	pthread_attr_t large;
	rounds_before = rounds;
	pthread_key_create(&late, load_late);
	pthread_attr_init(&large);
	pthread_attr_setstacksize(&large, 64 << 20);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 20; i++)
			pthread_create(&t[i], &large, set_late, 0);
		for (int i = 0; i < 20; i++)
			pthread_join(t[i], 0);
	}
}

// ---- signals from outside

static void *load_for_ever(void *number)
{
	for (uint64_t i = 0;; i++)
		load((uint64_t)(uintptr_t)number << 40 | i * UINT64_C(0x9e3779b97f4a7c15) >> 24);
	return 0;
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void keep_busy(void)
{
	pthread_t t;
	for (uintptr_t i = 1; i < 4; i++)
		pthread_create(&t, 0, load_for_ever, (void *)i);
	say("ready");
	load_for_ever((void *)4);
}

static sigjmp_buf before_fault;

static void survive(int number) { siglongjmp(before_fault, number); }

// A lock of the runtime's stays locked: its owner leaves it by a fault in the tag.
static void lock_for_ever(void)
{
	signal(SIGSEGV, survive);
	if (sigsetjmp(before_fault, 1) == 0)
		__sg_begin((const char *)8);
	say("ready");
	fork(); // needs that lock
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
#define HOW(name, ...) else if (strcmp(how, name) == 0) { __VA_ARGS__; }
	loads(0, 100);
	if (strcmp(how, "") == 0)
		return 0;
	HOW("alarm", wait_for_alarm())
	HOW("virtual", compute_until(ITIMER_VIRTUAL))
	HOW("profile", compute_until(ITIMER_PROF))
	HOW("trap", __builtin_debugtrap())
	HOW("short stack", die_on_short_stack())
	HOW("no stack", handle_without_stack())
	HOW("daemon", if (daemon(1, 1) != 0) abort(); loads(1000, 10); return 0)
	HOW("forks", fork_often())
	HOW("minus one", return -1)
	HOW("busy", keep_busy())
	HOW("locked", lock_for_ever())
	HOW("late", begin_late(1))
	HOW("later", begin_late(3))
	HOW("last", begin_late(4))
	puts("done");
	return 0;
}
