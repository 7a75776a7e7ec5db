// Three threads that count, each for itself; the first thread counts before and
// after. Told "again", it starts itself once more while it runs.
#include "play.h"

#include <pthread.h>
#include <sys/wait.h>

static void *count(void *number)
{
	for (uint64_t i = 0; i < 200000; i++)
		load((uint64_t)(uintptr_t)number << 32 | i);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	if (argc > 1 && fork() == 0) {
		execl(argv[0], argv[0], (char *)0);
		return 1;
	}
	load(0);
	for (uint64_t i = 0; i < 3; i++)
		pthread_create(&t[i], 0, count, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	if (argc > 1)
		wait(0);
	load(1);
	return 0;
}
