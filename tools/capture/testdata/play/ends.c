// Loads a hundred numbers in order, and ends in the way that it is told to.
#include "play.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

static void loads(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		load(i);
}

static void crash(void)
{
	uint64_t *step = enter(2); // of three values
	step[0] = 1000;
	*(volatile int *)8 = 1;
	step[1] = step[2] = 1000;
}

static int deep(const volatile char *before)
{
	volatile char room[1000];
	room[0] = before[0];
	return before[0] == '!' ? 0 : deep(room) + room[0];
}

static void become(int *state, int value) { __atomic_store_n(state, value, __ATOMIC_SEQ_CST); }

static void await(const int *state, int value)
{
	while (__atomic_load_n(state, __ATOMIC_SEQ_CST) != value)
		usleep(100);
}

static void *wait_for_ever(void *ready)
{
	loads(1000, 7);
	become(ready, 1);
	for (;;)
		pause();
}

// A thread of a pool never ends.
static void pool(void)
{
	pthread_t t;
	int ready = 0;
	pthread_create(&t, 0, wait_for_ever, &ready);
	await(&ready, 1);
}

static void *finish_late(void *state)
{
	loads(1000, 7);
	uint64_t *step = enter(0);
	become(state, 1);
	await(state, 2);
	step[0] = 2000;
	become(state, 3);
	for (;;)
		pause();
}

// Writes the chunks of all threads.
static void unload_library(void)
{
	__sg_register(0, 0);
	__sg_unregister(0, 0);
}

// A thread is in the middle of a step when its chunk is written. It finishes this step, but makes no
// other one.
static void late(void)
{
	pthread_t t;
	int state = 0;
	unload_library();
	pthread_create(&t, 0, finish_late, &state);
	await(&state, 1);
	loads(3000, 10);
	unload_library();
	become(&state, 2);
	await(&state, 3);
	loads(4000, 10);
}

static void leave_by_exit(int number)
{
	(void)number;
	loads(100, 3);
	exit(5);
}

static volatile sig_atomic_t ticks;

static void tick(int number)
{
	(void)number;
	loads(1000, 5);
	ticks++;
}

// More steps than fit in the buffer.
static void crowd(int number)
{
	(void)number;
	loads(1000, 5000);
	ticks++;
}

// A step that is unfinished for a while.
static void slow_load(uint64_t address)
{
	uint64_t *step = enter(0);
	for (volatile int i = 0; i < 10; i++)
		;
	step[0] = address;
}

// A timer's handler comes at any moment, and makes steps of its own.
static void timer(void (*handler)(int), void (*load)(uint64_t))
{
	struct itimerval every = {{0, 1000}, {0, 1000}};
	signal(SIGPROF, handler);
	setitimer(ITIMER_PROF, &every, 0);
	for (uint64_t i = 0; ticks < 50; i++)
		load(UINT64_C(1) << 40 | i);
	setitimer(ITIMER_PROF, &(struct itimerval){0}, 0);
}

static void child(int forks)
{
	if (fork() == 0) {
		loads(1000, 10);
		if (forks > 1)
			child(forks - 1);
		exit(0);
	}
	wait(0);
}

static void close_all(void)
{
	for (int fd = 3; fd < 2000; fd++)
		close(fd);
	if (dup2(1, 900) < 0)
		abort();
}

static void small_files(void)
{
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){3000000, 3000000});
	uint64_t seed = 1;
	for (int i = 0; i < 2000000; i++)
		load(seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407);
}

static void many(void)
{
	uint64_t seed = 1;
	for (int i = 0; i < 1000000; i++)
		load(seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407);
}

static void regions(void)
{
	__sg_begin("first");
	loads(1000, 10);
	__sg_begin("second");
	loads(2000, 20);
	__sg_end();
	loads(3000, 30);
	__sg_end();
	loads(4000, 40);
	__sg_begin("second");
	loads(5000, 50);
	__sg_end();
}

static void later(void) { loads(100, 9); }

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
#define HOW(name, ...) else if (strcmp(how, name) == 0) { __VA_ARGS__; }
	loads(0, 100);
	if (strcmp(how, "return") == 0)
		return 7;
	HOW("atexit", atexit(later))
	HOW("abort", abort())
	HOW("crash", crash())
	HOW("overflow", deep(how))
	HOW("terminate", raise(SIGTERM))
	HOW("interrupt", raise(SIGINT))
	HOW("kill", loads(1000, 10000000); raise(SIGKILL))
	HOW("handler", signal(SIGTERM, leave_by_exit); raise(SIGTERM))
	HOW("_exit", _exit(3))
	HOW("quick", at_quick_exit(later); quick_exit(4))
	HOW("_Exit", at_quick_exit(later); atexit(later); _Exit(3))
	HOW("exec", execl("/bin/sh", "sh", "-c", "exit 6", (char *)0))
	HOW("execfail", execlp("/nowhere", "nowhere", (char *)0); printf("%d\n", errno); loads(100, 8))
	HOW("pool", pool())
	HOW("late", late())
	HOW("timer", timer(tick, load))
	HOW("crowd", timer(crowd, slow_load))
	HOW("fork", child(1); loads(100, 4))
	HOW("forks", child(2); loads(100, 4))
	HOW("close", close_all(); loads(100, 2))
	HOW("fsize", small_files())
	HOW("many", many())
	HOW("regions", regions())
	puts("done");
	return 0;
}
