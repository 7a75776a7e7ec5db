// The services of the operating system that the runtime uses: memory, and a lock. The runtime runs
// inside other programs, often in their allocator or in a signal handler, so it calls neither
// malloc nor stdio.
#ifndef STACKGLASS_SYSTEM_H
#define STACKGLASS_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

// In a traced program, the runtime is compiled as a single file, whole.c. These names are local to
// it, so they cannot conflict with names of the program.
#ifndef SG_API
#define SG_API extern
#endif

// Returns zeroed memory that costs nothing until it is used; 0 if there is none.
SG_API void *sg_map(size_t bytes);
SG_API void sg_unmap(void *memory, size_t bytes);
// Makes the memory longer, and may move it; 0 if that fails, and the memory is then unchanged.
SG_API void *sg_remap(void *memory, size_t bytes, size_t wanted);

// A lock, which is free if it is 0.
struct sg_lock {
	uint32_t state; // 0: free; 1: held; 2: held, and threads wait for it
};

SG_API void sg_acquire(struct sg_lock *lock); // does not change errno
SG_API void sg_release(struct sg_lock *lock);

// Calls the function after each second that a thread has waited for a lock or for the reader of a
// pipe.
SG_API void sg_each_second(void (*call)(void));
SG_API void sg_waited_a_second(void);

#endif
