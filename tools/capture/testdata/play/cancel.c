// Cancels threads in the state that its argument names, and prints for each how many
// loads it made and whether it was cancelled.
#include "play.h"

#include <pthread.h>
#include <sched.h>

enum { threads = 10, many = 150000 };

struct worker {
	uint64_t number;
	volatile uint64_t made;
	volatile int cancelled, ready, gone;
	pthread_t id;
};

static struct worker workers[threads];
static pthread_key_t key;

// No two steps are alike, so that chunks fill soon.
static void steps(struct worker *w, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		load(w->number << 40 | w->made * UINT64_C(0x9e3779b97f4a7c15) >> 24);
		w->made++;
	}
}

static void more_steps(void *w) { steps(w, 1000); }

static void tell_gone(void *w) { ((struct worker *)w)->gone = 1; }

static void wait_for(const volatile int *flag)
{
	while (!*flag)
		sched_yield(); // no cancellation point
}

static void *deferred(void *w)
{
	for (;;) {
		steps(w, 1);
		pthread_testcancel();
	}
}

static void *asynchronous(void *w)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	steps(w, UINT64_MAX);
	return w;
}

// Is cancelled, and then goes on without a cancellation point.
static void *pointless(void *w)
{
	wait_for(&((struct worker *)w)->cancelled);
	steps(w, many);
	pthread_testcancel();
	return w;
}

static void *disabled(void *w)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
	((struct worker *)w)->ready = 1;
	wait_for(&((struct worker *)w)->cancelled);
	steps(w, many);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
	pthread_testcancel();
	return w;
}

static void *blocked(void *w)
{
	int ends[2];
	char byte;
	steps(w, 1000);
	if (pipe(ends) == 0) {
		pthread_cleanup_push(more_steps, w);
		if (read(ends[0], &byte, 1) >= 0)
			abort();
		pthread_cleanup_pop(0);
	}
	return w;
}

static void *cleanup(void *w)
{
	pthread_cleanup_push(more_steps, w);
	deferred(w);
	pthread_cleanup_pop(0);
	return w;
}

// Its destructor makes steps while it is cancelled.
static void *ending(void *w)
{
	pthread_setspecific(key, w); // for end
	return 0;
}

static void end(void *w)
{
	((struct worker *)w)->ready = 1;
	wait_for(&((struct worker *)w)->cancelled);
	steps(w, many);
}

static void *detached(void *w)
{
	pthread_detach(pthread_self());
	pthread_cleanup_push(tell_gone, w);
	deferred(w);
	pthread_cleanup_pop(0);
	return w;
}

static const struct {
	const char *name;
	void *(*run)(void *);
	int at_once; // cancel it when it has hardly begun
} states[] = {
	{"deferred", deferred, 0}, {"asynchronous", asynchronous, 0}, {"begins", deferred, 1},     {"pointless", pointless, 1},
	{"disabled", disabled, 0}, {"blocked", blocked, 0},           {"cleanup", cleanup, 0},     {"ending", ending, 0},
	{"detached", detached, 0},
};

static void test(void *(*run)(void *), int at_once)
{
	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		void *result = 0;
		w->number = (uint64_t)i + 1;
		if (pthread_create(&w->id, 0, run, w) != 0)
			abort();
		if (run == ending || run == disabled)
			wait_for(&w->ready);
		else if (!at_once)
			usleep((useconds_t)(200 * (i + 1)));
		pthread_cancel(w->id);
		w->cancelled = 1;
		if (run == detached)
			wait_for(&w->gone);
		else
			pthread_join(w->id, &result);
		printf("%llu %d\n", (unsigned long long)w->made, result == PTHREAD_CANCELED);
	}
}

int main(int argc, char **argv)
{
	pthread_key_create(&key, end);
	load(0);
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		if (argc > 1 && strcmp(states[i].name, argv[1]) == 0)
			test(states[i].run, states[i].at_once);
	puts("done");
	return 0;
}
