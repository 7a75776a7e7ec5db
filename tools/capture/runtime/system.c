#define _GNU_SOURCE
#include "system.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *sg_map(size_t bytes)
{
	void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? 0 : memory;
}

void sg_unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

void *sg_remap(void *memory, size_t bytes, size_t wanted)
{
	if (!memory)
		return sg_map(wanted);
	memory = mremap(memory, bytes, wanted, MREMAP_MAYMOVE);
	return memory == MAP_FAILED ? 0 : memory;
}

// See Drepper, "Futexes are tricky", section 5: mutex 2.

static uint32_t swap(struct sg_lock *lock, uint32_t state)
{
	return atomic_exchange((_Atomic uint32_t *)&lock->state, state);
}

static void (*each_second)(void);

void sg_each_second(void (*call)(void)) { each_second = call; }

void sg_waited_a_second(void)
{
	if (each_second)
		each_second();
}

void sg_acquire(struct sg_lock *lock)
{
	static const long second[] = {1, 0}; // the kernel's timespec
	uint32_t seen = 0;
	if (atomic_compare_exchange_strong((_Atomic uint32_t *)&lock->state, &seen, 1))
		return;
	int error = errno;
	while (swap(lock, 2) != 0)
		if (syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, second, 0, 0) != 0 && errno == ETIMEDOUT)
			sg_waited_a_second();
	errno = error;
}

void sg_release(struct sg_lock *lock)
{
	if (swap(lock, 0) == 2)
		syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
