// Loads a hundred numbers in order, and then something happens to it that its
// argument names.
#include "play.h"

#include <signal.h>
#include <sys/time.h>

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
	puts("done");
	return 0;
}
