// The queue of the buffers that are to be encoded, and of the chunks that are to be written.
//
// A thread of the program submits a full buffer as a job, and continues in its next buffer.
// Background threads, and threads of the program that wait, do the work: they encode the jobs, pack
// the chunks that end in them, and write the chunks.
//
// The content of the file does not depend on who does the work, or when. The jobs of a thread are
// encoded in order. Chunks are written in the order of their last jobs. The floor of a chunk is
// computed from the chunks of other threads that were begun before its last job was submitted.
#ifndef STACKGLASS_QUEUE_H
#define STACKGLASS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "system.h"

struct sg_thread;

struct sg_job {
	uint64_t *buffer;     // if the words are a whole buffer
	uint64_t *low, *high; // the part of the buffer that the thread can use next; 0, 0: it has never been used

	// Set before the job is submitted.
	const uint64_t *from, *end; // the words
	const uint64_t *first;      // the first of them that is not SG_UNUSED
	uint64_t ticket;            // the first ticket, if there is no ticket word at first; otherwise 0
	bool follows;               // the ticket word follows the thread's previous ticket: no other thread has one between
	bool flush;                 // the chunk ends with this job
	uint64_t rest;              // the bound of the tickets of the thread's steps that are in no job, or SG_NONE

	// Set by the queue.
	struct sg_thread *thread;
	struct sg_job *next, *before;
	uint64_t number;
	uint64_t clock, oldest, floor; // when the job was submitted
	enum { sg_done, sg_waiting, sg_encoding } state;
};

// Sets the number of background threads. They are started when there is work for them.
SG_API void sg_queue_prepare(unsigned threads);
// Adds a job of the thread, which is encoded after the thread's other jobs. The caller holds the
// thread's lock. If it is going to wait for the job, no other thread is notified.
SG_API void sg_submit(struct sg_thread *t, struct sg_job *job, bool will_wait);

// While a thread waits, it does some of the work.

// Waits until the thread may use the buffer of this job again.
SG_API void sg_await_buffer(struct sg_thread *t, const struct sg_job *job);
// Waits until the file contains the chunks that end in the thread's jobs.
SG_API void sg_await_thread(struct sg_thread *t);
// Waits until the file contains the chunks that end in the jobs that have been submitted so far.
SG_API void sg_await_all(void);

// For a child of fork, in which there are neither background threads nor jobs.
SG_API void sg_queue_begin_anew(void);

#endif
