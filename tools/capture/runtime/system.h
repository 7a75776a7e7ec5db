// What the runtime takes from the operating system: memory, a lock. It runs inside
// of other people's programs, often inside of their allocator or a signal handler,
// so it calls neither malloc nor stdio.
#ifndef STACKGLASS_SYSTEM_H
#define STACKGLASS_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

// A traced program holds the runtime as one piece, whole.c, in which these names
// are its own: they cannot meet equal names of the program.
#ifndef SG_API
#define SG_API extern
#endif

// Zeroed memory that costs nothing until it is touched; 0 where there is none.
SG_API void *sg_map(size_t bytes);
SG_API void sg_unmap(void *memory, size_t bytes);
// The same memory, longer, perhaps elsewhere; 0 leaves it as it was.
SG_API void *sg_remap(void *memory, size_t bytes, size_t wanted);

// A lock that is free when it is 0.
struct sg_lock {
	uint32_t state; // 0 free, 1 held, 2 held and waited for
};

SG_API void sg_acquire(struct sg_lock *lock); // keeps errno
SG_API void sg_release(struct sg_lock *lock);

// Calls that function after each second that a thread has waited for a lock or for
// the reader of a pipe.
SG_API void sg_each_second(void (*call)(void));
SG_API void sg_waited_a_second(void);

#endif
