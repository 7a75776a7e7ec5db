// Two threads, one after the other, that use the same buffer. In the first thread, which makes more
// references than are recorded, a handler interrupts steps. Then it fills the buffer, so that the
// interrupted steps are written to words that the runtime has already emptied. In the second thread, a
// handler interrupts one step, and fills the buffer.
#include "play.h"

#include <pthread.h>

enum { interrupted = 4090, many = 10000 }; // the buffer has room for about 4,090 loads

static void fill_buffer(void)
{
	for (uint64_t i = 0; i < many; i++)
		load(i);
}

static void *first(void *unused)
{
	static uint64_t *value[interrupted];
	fill_buffer();
	fill_buffer();
	fill_buffer();
	for (int i = 0; i < interrupted; i++)
		value[i] = enter(0);
	fill_buffer();
	for (int i = 0; i < interrupted; i++) {
		value[i][-1] = (uint64_t)(uintptr_t)&play_block[0];
		value[i][0] = UINT64_C(1) << 40;
	}
	return unused;
}

static void *second(void *unused)
{
	for (uint64_t i = 0; i < 4000; i++)
		load(i);
	uint64_t *value = enter(0);
	fill_buffer();
	value[0] = UINT64_C(1) << 41;
	return unused;
}

int main(void)
{
	pthread_t t;
	load(0);
	pthread_create(&t, 0, first, 0);
	pthread_join(t, 0);
	pthread_create(&t, 0, second, 0);
	pthread_join(t, 0);
	return 0;
}
