// Replaces pthread_create and pthread_join by the linker option --wrap. A thread then knows which
// thread created it. A thread that waits for others first writes its own steps, so that the steps
// of the others need not be held back for them.
#define _GNU_SOURCE
#include <pthread.h>

#include "runtime.h"

struct beginning {
	void *(*run)(void *);
	void *argument;
	uint32_t parent;
};

static void *begin_run(void *memory)
{
	struct beginning b = *(struct beginning *)memory;
	sg_unmap(memory, sizeof b);
	sg_parent = b.parent;
	return b.run(b.argument);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
	// Not allocated by malloc, because the thread would return it to a different arena.
	struct beginning *b = sg_map(sizeof *b);
	if (!b)
		return __real_pthread_create(thread, attr, run, argument);
	*b = (struct beginning){run, argument, sg_self() ? sg_self()->number : 0};
	int error = __real_pthread_create(thread, attr, begin_run, b);
	if (error)
		sg_unmap(b, sizeof *b);
	return error;
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_join(pthread_t thread, void **result)
{
	sg_flush();
	return __real_pthread_join(thread, result);
}
