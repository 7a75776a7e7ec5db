// The interfaces between the parts of the runtime.
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
// This code may run anywhere in the program: in its allocator, in a signal handler, or in a thread
// that is about to end. While the buffer of a thread is emptied, signals and cancellation are held
// back (sg_enter).
//
// Signals are not held back while instrumented code writes a step, because that would be slow. A
// handler can therefore run between any two of its instructions, and it can write steps and even
// empty the buffer. No step is lost or changed, for these reasons:
//
//   - A step's words are reserved by a single instruction, which moves the cursor. A handler that runs
//     before it uses the words that the program would have used, and the program then reserves the
//     words after them. A handler that runs after it uses later words. No words are reserved twice.
//     The cursor moves back only when the buffer has been emptied.
//   - All words after the cursor are SG_UNWRITTEN. The words of a step therefore remain SG_UNWRITTEN
//     until the program writes them.
//   - If a handler empties the buffer, the encoder keeps the words that are reserved but not written:
//     the words from the first SG_UNWRITTEN to the next written word if the step's block is missing,
//     or the whole step if a value is missing. They stay where they are, outside the new buffer. When
//     the buffer is emptied again, the encoder reads them again, and encodes the steps that the
//     program has finished by then. In the trace, such a step follows the steps of the handler.
//   - The program reads the end of the buffer before it reserves words. If a handler empties the
//     buffer in between, the program compares its words with the previous end. They may then be
//     beyond the new end, but only in the reserve after it. The first step of a thread finds the end
//     0, even if a handler made the first step in the meantime.
//   - The program reads the clock and the ticket after it reserves words. If a handler writes a chunk
//     before that, the program notices the new clock. If a handler writes a chunk later, the step is
//     in the next chunk, with that chunk's ticket.
//   - If there is no room, or no valid ticket, __sg_more fills the words with SG_UNUSED, one by one,
//     makes room, and the program reserves words again. The second reservation is not checked. If a
//     handler fills the buffer just before it, its words are in the reserve.
//   - A handler that leaves by longjmp may leave a step unfinished for ever. The encoder keeps at most
//     four pieces of memory, and drops the oldest. It counts dropped pieces as lost.
//
// A handler that interrupts a handler is the same case. The reserve has room for the steps of five
// contexts that interrupt each other at these places.
//
// The words of a step are the only data that instrumented code and the runtime share without a lock.
// When another thread encodes the steps of a running thread (sg_drain), the owner may be at any of
// these places, too. It writes the block of a step before the values.
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

// No unwritten step: larger than all tickets.
#define SG_NONE UINT64_MAX

enum { sg_buffer_bytes = 8 * SG_MOST_WORDS };

struct sg_stack {
	uint64_t low, high; // 0, 0: unknown
};
// A thread of the program. Nodes are never freed: another thread reuses the node of a thread that
// has ended.
struct sg_thread {
	struct sg_thread *next;
	uint32_t live;   // a thread uses the node
	uint32_t number; // of the thread in the trace, from 1
	uint64_t oldest; // lower bound of the tickets of steps that are not in the file yet, or SG_NONE

	struct sg_lock lock;     // for the following fields
	struct __sg_thread *hot; // the thread's own structure; 0 when it is about to disappear with the thread
	uint64_t *buffer;        // has sg_buffer_bytes bytes
	uint64_t *from;          // all words before it have been encoded
	struct sg_encoder *encoder;
	bool recording;
	bool described; // its THRD frame has been written
	uint64_t id;    // the operating system's id
	struct sg_stack stack;

	bool busy;             // the thread is in the runtime
	int rounds;            // rounds of destructors so far
	uint64_t open_regions; // one bit for each region, the innermost one lowest: whether it counts for STACKGLASS_REGION
	void *signal_stack; // for handlers, if the thread has no alternate stack of its own
	size_t signal_stack_bytes;
};

struct sg_run {
	struct sg_settings settings;
	struct sg_file *file;
	struct sg_thread *threads; // all threads that ever existed
	struct sg_lock modules;    // for the list of modules, and for tags
	struct sg_lock ending;
	bool recording;   // steps are recorded
	bool over;        // nothing will be recorded any more
	bool told;        // the failure to write has been reported
	pid_t process;    // the process that records
	uint64_t lost;    // lost steps of encoders that no longer exist
	uint32_t regions; // number of open regions that count
	uint32_t libraries; // number of loaded instrumented libraries
	bool exiting, finished;
	int status;
};

SG_API struct sg_run sg_run;

#define sg_load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define sg_store(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

// ---- runtime.c

SG_API void sg_start(void);
SG_API struct sg_thread *sg_self(void);
// Starts a trace in a file, with all modules.
SG_API bool sg_open(const char *path);
// Encodes the contents of the thread's buffer, and writes its chunk. The caller holds the thread's
// lock.
SG_API void sg_drain(struct sg_thread *t);
// For a child of fork: this thread starts again in the current trace.
SG_API void sg_begin_anew(struct sg_thread *t);
SG_API void sg_free_encoder(struct sg_thread *t);
SG_API void sg_bump_clock(void);
// Code that takes a lock is enclosed by these two calls. Between them, the thread handles no
// signals except faults, and pthread_cancel does not end it. Otherwise, a thread that ended there
// would leave its locks locked, and calls such as open and write would be cancellation points that
// the program does not have.
struct sg_outside {
	sigset_t signals;
	int cancel_state, cancel_type;
};
SG_API void sg_enter(struct sg_outside *before);
SG_API void sg_leave(const struct sg_outside *before);
SG_API void sg_block_signals(sigset_t *before);
// Reports whether the thread blocked a signal before it entered.
SG_API bool sg_blocks(int number);
// Writes this thread's chunk now.
SG_API void sg_flush(void);
// Returns the number of the thread that created this one; 0 if unknown.
#define SG_TLS __attribute__((tls_model("initial-exec")))
SG_API __thread uint32_t sg_parent SG_TLS;
SG_API void sg_step(const struct __sg_block *b, uint64_t value);

// The runtime's own events; tables.h contains their tables.
enum { sg_thread_start, sg_thread_end, sg_region_begin, sg_region_end, sg_own_blocks };
SG_API struct __sg_block sg_own[sg_own_blocks];

// ---- place.c

SG_API struct sg_stack sg_my_stack(void);
SG_API uint64_t sg_my_id(void);
SG_API void sg_thread_name(uint64_t id, char to[32]);
// Writes the facts of the header, and returns their number. They are valid until the next call.
enum { sg_most_facts = 4096 };
SG_API size_t sg_facts(struct sg_fact to[sg_most_facts], bool sliced);

// ---- ending.c

SG_API void sg_ending_prepare(void);
SG_API void sg_signal_stack(struct sg_thread *t, bool wanted);
// Writing failed, or reached the limit.
SG_API void sg_stop(void);
// No more code of the program will run in this process.
SG_API void sg_finish(const char *how, int status);

// Calls around an exec that may fail: whether to resume recording.
SG_API bool sg_pause(struct sg_outside *before);
SG_API void sg_resume(const struct sg_outside *before);

#endif
