// The parts of the runtime among each other.
//
//	runtime.c   buffers, tickets, threads, modules, calipers
//	place.c     where a thread's stack lies, and what the program is called
//	ending.c    how a run ends: exit, signals, fork, a full disk
//	leave.c     _exit and exec, where the linker lets us stand before them
//	create.c    the same for pthread_create and pthread_join
//	library.c   goes into each shared library
//
// Locks are taken in the order modules, ending, a thread's, the file's.
//
// The code here may run anywhere in the program: in its allocator, in a handler of
// its signals, in a thread that is about to end. While a thread's buffer is being
// emptied, signals and cancellation are held back (sg_enter). While instrumented
// code moves the cursor they are not: where a handler comes just then, its own steps
// are overwritten, and those that it interrupted stay whole. In a tight loop that may
// be every other signal.
#ifndef STACKGLASS_RUNTIME_H
#define STACKGLASS_RUNTIME_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "encode.h"
#include "file.h"
#include "settings.h"
#include "system.h"

// No unwritten step: later than all tickets.
#define SG_NONE UINT64_MAX

struct sg_stack {
	uint64_t low, high; // 0, 0: not known
};
// A thread of the program. Nodes are never freed: a thread that ends leaves its
// node to another one.
struct sg_thread {
	struct sg_thread *next;
	uint32_t live;   // a thread has it
	uint32_t number; // of the thread in the trace, from 1
	uint64_t oldest; // lower bound of the tickets of steps that are not in the file, or SG_NONE

	struct sg_lock lock;     // of what follows
	struct __sg_thread *hot; // its thread's; 0 when that is about to go with the thread
	uint64_t *buffer;        // of buffer_bytes
	uint64_t *from;          // words before are encoded
	struct sg_encoder *encoder;
	bool recording;
	bool described; // its THRD frame is written
	uint64_t id;    // the system's
	struct sg_stack stack;

	bool busy;             // it is in the runtime
	int rounds;            // of destructors that it has seen
	uint64_t open_regions; // a bit each, the innermost lowest: whether it counts for STACKGLASS_REGION
	void *signal_stack; // for handlers, where the thread has none of its own
	size_t signal_stack_bytes;
};

struct sg_run {
	struct sg_settings settings;
	struct sg_file *file;
	struct sg_thread *threads; // all that ever were
	struct sg_lock modules;    // of which there are, and of tags
	struct sg_lock ending;
	bool recording;   // steps are kept
	bool over;        // nothing will be recorded any more
	bool told;        // that writing failed
	pid_t process;    // whose run it is
	uint64_t lost;    // steps, of encoders that are gone
	uint32_t regions; // that are open and count
	uint32_t libraries; // that are instrumented and loaded
	bool exiting, finished;
	int status;
};

SG_API struct sg_run sg_run;

#define sg_load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define sg_store(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

// ---- runtime.c

SG_API void sg_start(void);
SG_API struct sg_thread *sg_self(void);
// Begins a trace there, with all modules.
SG_API bool sg_open(const char *path);
// Encodes what the thread has in its buffer, and writes its chunk. Its lock is
// held.
SG_API void sg_drain(struct sg_thread *t);
// For a child of fork: the thread, this one, starts over in the trace as it is now.
SG_API void sg_begin_anew(struct sg_thread *t);
SG_API void sg_free_encoder(struct sg_thread *t);
SG_API void sg_bump_clock(void);
// Whatever takes a lock stands between these two. In between, the thread handles no
// signal, except those that a fault raises, and pthread_cancel does not end it: a
// thread that ended there would leave its locks locked, and open, write and the like
// would be cancellation points that the program does not have.
struct sg_outside {
	sigset_t signals;
	int cancel_state, cancel_type;
};
SG_API void sg_enter(struct sg_outside *before);
SG_API void sg_leave(const struct sg_outside *before);
SG_API void sg_block_signals(sigset_t *before);
// Whether the thread blocked a signal before it entered.
SG_API bool sg_blocks(int number);
// Writes this thread's chunk now.
SG_API void sg_flush(void);
// The number of the thread that made this one, 0 where it is not known.
#define SG_TLS __attribute__((tls_model("initial-exec")))
SG_API __thread uint32_t sg_parent SG_TLS;
SG_API void sg_step(const struct __sg_block *b, uint64_t value);

// The runtime's own events; tables.h has their tables.
enum { sg_thread_start, sg_thread_end, sg_region_begin, sg_region_end, sg_own_blocks };
SG_API struct __sg_block sg_own[sg_own_blocks];

// ---- place.c

SG_API struct sg_stack sg_my_stack(void);
SG_API uint64_t sg_my_id(void);
SG_API void sg_thread_name(uint64_t id, char to[32]);
// The facts of the header; gives how many. They are good until the next call.
enum { sg_most_facts = 4096 };
SG_API size_t sg_facts(struct sg_fact to[sg_most_facts], bool sliced);

// ---- ending.c

SG_API void sg_ending_prepare(void);
SG_API void sg_signal_stack(struct sg_thread *t, bool wanted);
// Writing failed, or came to the limit.
SG_API void sg_stop(void);
// Nothing of the program in this process will run any more.
SG_API void sg_finish(const char *how, int status);

// Around an exec that may fail: whether to resume.
SG_API bool sg_pause(struct sg_outside *before);
SG_API void sg_resume(const struct sg_outside *before);

#endif
