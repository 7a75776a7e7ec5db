// What the runtime takes from the operating system: memory, a lock. It runs inside
// of other people's programs, often inside of their allocator or a signal handler,
// so it calls neither malloc nor stdio.
#ifndef STACKGLASS_SYSTEM_H
#define STACKGLASS_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

// Zeroed memory that costs nothing until it is touched; 0 where there is none.
void *sg_map(size_t bytes);
void sg_unmap(void *memory, size_t bytes);
// The same memory, longer, perhaps elsewhere; 0 leaves it as it was.
void *sg_remap(void *memory, size_t bytes, size_t wanted);

// A lock that is free when it is 0.
struct sg_lock {
	uint32_t state; // 0 free, 1 held, 2 held and waited for
};

void sg_acquire(struct sg_lock *lock);
void sg_release(struct sg_lock *lock);

#endif
