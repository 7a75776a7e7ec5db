// A program that wraps functions itself, as tests do.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
	puts("wrapped");
	return __real_pthread_create(thread, attr, run, argument);
}

static volatile int number;

static void *run(void *nothing)
{
	number = 1;
	return nothing;
}

int main(void)
{
	pthread_t thread;
	if (pthread_create(&thread, 0, run, 0) == 0)
		pthread_join(thread, 0);
	fflush(stdout);
	_exit(number);
}
