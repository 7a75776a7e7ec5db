#define _GNU_SOURCE
#include "queue.h"

#include <limits.h>
#include <unistd.h>

#include "runtime.h"

enum {
	// A chunk is written if this many tickets have been taken since it began. Chunks of other
	// threads then need not be held back for long to bring them into order.
	farthest_ticket = 1 << 22,
	spare_chunks = 2, // that are not written yet, in addition to one for each background thread
	few_jobs = 4,     // not worth waking a thread
};

static struct {
	struct sg_lock lock;
	unsigned limit, threads, idle; // the maximum number of background threads; how many there are; how many wait for work
	unsigned waiting;              // threads of the program that wait
	uint32_t work, progress;       // change when there is more work, or when a job or a chunk is done
	uint64_t number;               // of the latest job
	struct sg_job *first, *last;   // the jobs that have not been encoded, in order
	struct sg_payload *chunks;     // the chunks that have not been written, in the order of their last jobs
	struct sg_payload *spare;
	unsigned chunk_count;
	bool writing; // a thread is writing a chunk
} queue;

// ---- notifications; the caller holds the lock

static void notify(uint32_t *word, int threads)
{
	(*word)++;
	sg_wake(word, threads);
}

static void background(void);

static void start_thread(void)
{
	queue.threads++;
	if (!sg_spawn(background))
		queue.limit = --queue.threads;
}

// If all background threads are busy, a thread of the program that waits can do the work.
static void tell_work(void)
{
	if (queue.idle > 0)
		notify(&queue.work, 1);
	else if (queue.threads < queue.limit && getpid() == sg_run.process)
		start_thread();
	else if (queue.waiting > 0)
		notify(&queue.progress, INT_MAX);
}

static void tell_progress(void)
{
	if (queue.waiting > 0)
		notify(&queue.progress, INT_MAX);
}

// ---- jobs

void sg_queue_prepare(unsigned threads) { queue.limit = threads; }

void sg_submit(struct sg_thread *t, struct sg_job *job, bool will_wait)
{
	sg_acquire(&queue.lock);
	job->thread = t;
	job->state = sg_waiting;
	job->number = ++queue.number;
	job->clock = sg_load(&__sg_clock);
	job->oldest = sg_load(&t->oldest);
	job->floor = sg_floor(t);
	sg_store(&t->oldest, job->rest);
	job->next = 0;
	job->before = queue.last;
	*(queue.last ? &queue.last->next : &queue.first) = job;
	queue.last = job;
	t->jobs++;
	if (!will_wait && t->jobs >= few_jobs)
		tell_work();
	sg_release(&queue.lock);
}

static void remove_job(struct sg_job *job)
{
	*(job->before ? &job->before->next : &queue.first) = job->next;
	*(job->next ? &job->next->before : &queue.last) = job->before;
	job->state = sg_done;
	job->thread->jobs--;
}

static struct sg_job *next_job(void)
{
	for (struct sg_job *job = queue.first; job; job = job->next)
		if (job->state == sg_waiting && !job->thread->encoding)
			return job;
	return 0;
}

static void encode_words(const struct sg_job *job)
{
	struct sg_encoder *e = job->thread->encoder;
	const uint64_t *from = job->first;
	if (job->ticket && sg_encoder_empty(e)) {
		uint64_t word = job->ticket << 1 | 1;
		sg_encode(e, &word, &word + 1);
	} else if (!job->ticket && from < job->end) {
		// Steps after a ticket that directly follows the previous one can have the previous one.
		if (!job->follows || sg_encoder_empty(e) || !sg_encoder_settled(e))
			sg_encode(e, from, from + 1);
		from++;
	}
	sg_encode_finished(e);
	sg_encode(e, from, job->end);
	sg_encoder_clear(e, job->from, job->end);
}

static bool ends_chunk(const struct sg_job *job)
{
	const struct sg_thread *t = job->thread;
	uint64_t oldest = t->chunk_oldest != SG_NONE ? t->chunk_oldest : job->oldest;
	bool far = oldest != SG_NONE && job->clock > oldest && job->clock - oldest > farthest_ticket;
	return job->flush || far || sg_encoder_full(t->encoder);
}

// Finds the longest part of the buffer without unfinished steps.
static void find_room(struct sg_job *job)
{
	const uint64_t *from = job->buffer, *end = from + SG_MOST_WORDS, *past = end, *low = from, *high = from;
	while (from < end) {
		const uint64_t *at = sg_encoder_unfinished(job->thread->encoder, from, end, &past);
		if (at - from > high - low) {
			low = from;
			high = at;
		}
		from = at < end ? past : end;
	}
	job->low = (uint64_t *)(uintptr_t)low;
	job->high = (uint64_t *)(uintptr_t)high;
}

static struct sg_payload *take_payload(void)
{
	struct sg_payload *p = queue.spare;
	if (!p)
		return sg_payload_new();
	queue.spare = p->next;
	return p;
}

static void add_chunk(struct sg_payload *p, const struct sg_job *job)
{
	struct sg_payload **at = &queue.chunks;
	struct sg_thread *t = job->thread;
	p->thread = t;
	p->first = t->chunk_oldest != SG_NONE ? t->chunk_first : job->number;
	p->oldest = t->chunk_oldest != SG_NONE ? t->chunk_oldest : job->oldest;
	p->last = job->number;
	p->floor = job->floor;
	p->state = sg_cut;
	while (*at && (*at)->last < p->last)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	queue.chunk_count++;
	t->chunks++;
}

// The caller holds the lock, which is released in the meantime; so do the next two functions.
static void encode_job(struct sg_job *job)
{
	struct sg_thread *t = job->thread;
	struct sg_payload *p = 0;
	job->state = sg_encoding;
	t->encoding = true;
	sg_release(&queue.lock);
	encode_words(job);
	bool empty = sg_encoder_empty(t->encoder), ends = ends_chunk(job);
	if (job->buffer)
		find_room(job);
	sg_acquire(&queue.lock);
	if (!empty && ends && (p = sg_encoder_cut(t->encoder, take_payload())))
		add_chunk(p, job);
	if (empty || ends) {
		t->chunk_oldest = SG_NONE;
	} else if (t->chunk_oldest == SG_NONE) {
		t->chunk_oldest = job->oldest;
		t->chunk_first = job->number;
	}
	t->lost = sg_encoder_lost(t->encoder);
	t->encoding = false;
	remove_job(job);
	if (p)
		tell_work();
	if (2 * t->jobs == sg_buffers || t->jobs == 0)
		tell_progress();
}

// ---- chunks

static struct sg_payload *next_to_pack(void)
{
	for (struct sg_payload *p = queue.chunks; p; p = p->next)
		if (p->state == sg_cut)
			return p;
	return 0;
}

static void pack_chunk(struct sg_payload *p)
{
	p->state = sg_packing;
	sg_release(&queue.lock);
	sg_payload_pack(p);
	sg_acquire(&queue.lock);
	p->state = sg_packed;
}

// Reports whether the first chunk can be written: no chunk before it can appear any more.
static bool can_write(void)
{
	const struct sg_payload *p = queue.chunks;
	return p && p->state == sg_packed && !queue.writing && (!queue.first || queue.first->number > p->last);
}

// Returns the floor of the first chunk. All jobs before its last one have been encoded.
static uint64_t floor_of(const struct sg_payload *p)
{
	uint64_t floor = p->floor;
	for (const struct sg_payload *later = p->next; later; later = later->next)
		if (later->thread != p->thread && later->first < p->last && later->oldest < floor)
			floor = later->oldest;
	for (const struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next)
		if (t != p->thread && t->chunk_oldest < floor && t->chunk_first < p->last)
			floor = t->chunk_oldest;
	return floor;
}

static void write_chunk(void)
{
	struct sg_payload *p = queue.chunks;
	uint64_t floor = floor_of(p);
	queue.writing = true;
	sg_release(&queue.lock);
	sg_describe(p->thread);
	if (!sg_payload_write(p, sg_run.file, floor))
		sg_stop();
	sg_acquire(&queue.lock);
	queue.writing = false;
	queue.chunks = p->next;
	queue.chunk_count--;
	p->thread->chunks--;
	p->next = queue.spare;
	queue.spare = p;
	tell_progress();
}

// ---- work

// Does some work, if there is any. Encoding the buffers of a thread is what cannot be shared, so
// the background threads do it first, and threads that wait last.
static bool work(bool encode_first)
{
	struct sg_job *job = next_job();
	struct sg_payload *p = next_to_pack();
	if (can_write())
		write_chunk();
	else if (job && (encode_first || !p))
		encode_job(job);
	else if (p)
		pack_chunk(p);
	else
		return false;
	return true;
}

static void background(void)
{
	sg_acquire(&queue.lock);
	for (;;) {
		if (work(true))
			continue;
		uint32_t seen = queue.work;
		queue.idle++;
		sg_release(&queue.lock);
		while (__atomic_load_n(&queue.work, __ATOMIC_SEQ_CST) == seen)
			sg_wait(&queue.work, seen);
		sg_acquire(&queue.lock);
		queue.idle--;
	}
}

static void wait_for_progress(void)
{
	uint32_t seen = queue.progress;
	queue.waiting++;
	sg_release(&queue.lock);
	sg_wait(&queue.progress, seen);
	sg_acquire(&queue.lock);
	queue.waiting--;
}

static bool crowded(const struct sg_thread *t)
{
	return 2 * t->jobs > sg_buffers || queue.chunk_count > queue.limit + spare_chunks;
}

// If there is no free buffer, half of them are to be free, so that the thread does not have to wait
// again soon. A background thread that has nothing to do is woken, even if this takes longer than a
// job: while this thread encoded, the other one would find nothing to do and sleep again.
void sg_await_buffer(struct sg_thread *t, const struct sg_job *job)
{
	sg_acquire(&queue.lock);
	if (job->state != sg_done || queue.chunk_count > queue.limit + spare_chunks)
		while (crowded(t)) {
			if (queue.idle > 0)
				tell_work();
			if (queue.idle > 0 || !work(false))
				wait_for_progress();
		}
	sg_release(&queue.lock);
}

void sg_await_thread(struct sg_thread *t)
{
	sg_acquire(&queue.lock);
	while (t->jobs > 0 || t->chunks > 0)
		if (!work(true))
			wait_for_progress();
	sg_release(&queue.lock);
}

void sg_await_all(void)
{
	sg_acquire(&queue.lock);
	uint64_t last = queue.number;
	while ((queue.first && queue.first->number <= last) || (queue.chunks && queue.chunks->last <= last))
		if (!work(true))
			wait_for_progress();
	sg_release(&queue.lock);
}

void sg_queue_begin_anew(void)
{
	unsigned limit = queue.limit;
	memset(&queue, 0, sizeof queue);
	queue.limit = limit;
}
