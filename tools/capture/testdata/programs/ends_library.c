// A library that ends the program, by itself or after a thread of its own.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int numbers[100];

static void *count(void *first)
{
	for (long i = (long)first; i < (long)first + 50; i++)
		numbers[i] = (int)i;
	return 0;
}

void leave(const char *how)
{
	pthread_t thread;
	count(0);
	if (strcmp(how, "exec") == 0)
		execl("/bin/sh", "sh", "-c", "exit 6", (char *)0);
	if (strcmp(how, "quick") == 0)
		quick_exit(9);
	if (pthread_create(&thread, 0, count, (void *)50) == 0)
		pthread_join(thread, 0);
	_exit(5);
}
