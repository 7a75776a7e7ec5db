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

// After Drepper, "Futexes are tricky", section 5: mutex 2.

static uint32_t swap(struct sg_lock *lock, uint32_t state)
{
	return atomic_exchange((_Atomic uint32_t *)&lock->state, state);
}

void sg_acquire(struct sg_lock *lock)
{
	uint32_t seen = 0;
	if (atomic_compare_exchange_strong((_Atomic uint32_t *)&lock->state, &seen, 1))
		return;
	while (swap(lock, 2) != 0)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void sg_release(struct sg_lock *lock)
{
	if (swap(lock, 0) == 2)
		syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
