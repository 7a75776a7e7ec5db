#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"
#include "say.h"
#include "tables.h"

__thread struct __sg_thread __sg_thread SG_TLS;
SG_API __thread uint32_t sg_parent SG_TLS;
uint64_t __sg_clock __attribute__((aligned(64)));

SG_API struct sg_run sg_run = {0};

enum {
	// Steps that cannot be recorded are written here: steps of a thread that has ended, or that is
	// already in the runtime.
	bin_words = SG_RESERVE_WORDS,
	// A chunk is written if this many tickets have been taken since it began. Chunks of other
	// threads then need not be held back for long to bring them into order.
	farthest_ticket = 1 << 22,
	destructor_rounds = 4, // the number of rounds that the C library guarantees
};

static uint64_t bin[bin_words];

static __thread struct sg_thread *self SG_TLS;
// The thread is starting or has ended: it has no buffer.
static __thread bool outside SG_TLS;
static pthread_key_t at_thread_end;

SG_API struct sg_thread *sg_self(void) { return self; }

// ---- signals and cancellation

static __thread unsigned entered SG_TLS;
static __thread uint64_t own_blocked SG_TLS; // signals that the thread itself blocks, one bit for each signal

SG_API void sg_block_signals(sigset_t *before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	sigset_t all;
	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

SG_API void sg_enter(struct sg_outside *before)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel_state);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before->cancel_type);
	sg_block_signals(&before->signals);
	if (entered++ == 0)
		memcpy(&own_blocked, &before->signals, sizeof own_blocked);
}

SG_API void sg_leave(const struct sg_outside *before)
{
	entered--;
	pthread_sigmask(SIG_SETMASK, &before->signals, 0);
	pthread_setcancelstate(before->cancel_state, 0);
	// This comes last, because it may end the thread. In glibc, pthread_setcancelstate would end
	// the thread without the result PTHREAD_CANCELED.
	pthread_setcanceltype(before->cancel_type, 0);
}

SG_API bool sg_blocks(int number) { return own_blocked >> (number - 1) & 1; }

// ---- tickets

SG_API void sg_bump_clock(void) { __atomic_fetch_add(&__sg_clock, 1, __ATOMIC_SEQ_CST); }

// A lower bound is published before a ticket is taken. A thread that reads the clock and then all
// bounds (floor_of) therefore either sees the bound, or the ticket is later than the clock was.
static uint64_t take_ticket(struct sg_thread *t, uint64_t clock)
{
	if (sg_run.settings.sliced) {
		if (sg_load(&t->oldest) == SG_NONE)
			sg_store(&t->oldest, clock);
		return sg_load(&__sg_clock);
	}
	if (sg_load(&t->oldest) == SG_NONE)
		sg_store(&t->oldest, clock + 1);
	return __atomic_add_fetch(&__sg_clock, 1, __ATOMIC_SEQ_CST);
}

// Every step that any thread writes from now on, except the steps that t already has, has a ticket
// of at least this value.
static uint64_t floor_of(const struct sg_thread *t)
{
	uint64_t floor = sg_load(&__sg_clock) + !sg_run.settings.sliced;
	for (struct sg_thread *other = sg_load(&sg_run.threads); other; other = other->next) {
		uint64_t oldest = sg_load(&other->oldest);
		if (other != t && oldest < floor)
			floor = oldest;
	}
	return floor;
}

// ---- buffers

// Gives the thread the longest part of the buffer without unfinished steps. The last words of this
// part are the reserve.
static void give_buffer(struct sg_thread *t)
{
	const uint64_t *end = t->buffer + SG_MOST_WORDS, *from = t->buffer, *past = end, *low = from, *high = from;
	while (from < end) {
		const uint64_t *at = t->encoder ? sg_encoder_unfinished(t->encoder, from, end, &past) : end;
		if (at - from > high - low) {
			low = from;
			high = at;
		}
		from = at < end ? past : end;
	}
	__sg_thread.cursor = t->from = (uint64_t *)(uintptr_t)low;
	__sg_thread.end = (uint64_t *)(uintptr_t)(high - SG_RESERVE_WORDS);
}

static void take_buffer(void)
{
	__sg_thread.cursor = bin;
	__sg_thread.end = 0; // so that every step calls the runtime
}

SG_API void sg_free_encoder(struct sg_thread *t)
{
	if (!t->encoder)
		return;
	__atomic_fetch_add(&sg_run.lost, sg_encoder_lost(t->encoder), __ATOMIC_SEQ_CST);
	sg_encoder_free(t->encoder);
	t->encoder = 0;
}

// As late as possible, because a thread sets its name itself.
static void describe_thread(struct sg_thread *t)
{
	struct sg_body body = {0};
	char name[32];
	if (t->described)
		return;
	sg_thread_name(t->id, name);
	sg_put_uv(&body, t->number);
	sg_put_uv(&body, t->id);
	sg_put_str(&body, name);
	sg_put_uv(&body, t->stack.low);
	sg_put_uv(&body, t->stack.high);
	sg_file_frame(sg_run.file, "THRD", &body);
	t->described = true;
}

// rest is a lower bound of the tickets of the thread's steps that are not in the chunk, or SG_NONE.
static void write_chunk(struct sg_thread *t, uint64_t rest)
{
	if (!sg_encoder_empty(t->encoder))
		describe_thread(t);
	uint64_t floor = floor_of(t);
	bool written = sg_encoder_flush(t->encoder, floor < rest ? floor : rest);
	sg_store(&t->oldest, rest);
	if (!written)
		sg_stop();
}

// Encodes the words up to a position.
static void consume(struct sg_thread *t, const uint64_t *end)
{
	if (t->recording && t->encoder && (t->from < end || sg_encoder_holds(t->encoder))) {
		const uint64_t *from = t->from;
		while (from < end && *from == SG_UNUSED)
			from++;
		if (from < end && sg_is_ticket(*from)) {
			sg_encode(t->encoder, from, from + 1);
			from++;
		} else if (sg_encoder_empty(t->encoder)) {
			// The chunk was written in the meantime, by another thread or by a signal handler.
			uint64_t oldest = sg_load(&t->oldest);
			uint64_t ticket = oldest != SG_NONE ? oldest : take_ticket(t, sg_load(&__sg_clock));
			uint64_t again = ticket << 1 | 1;
			sg_encode(t->encoder, &again, &again + 1);
		}
		sg_encode_finished(t->encoder);
		sg_encode(t->encoder, from, end);
	}
	sg_encoder_clear(t->encoder, t->from, end);
	t->from = (uint64_t *)end;
}

// Creates the encoder of a thread. The whole buffer is cleared: steps that are not recorded, such as
// steps after the recorded part, may have been written to words that were already cleared.
static void make_encoder(struct sg_thread *t)
{
	sg_encoder_clear(0, t->buffer, t->buffer + SG_MOST_WORDS);
	t->encoder = sg_run.file ? sg_encoder_new(sg_run.file, t->number) : 0;
}

SG_API void sg_begin_anew(struct sg_thread *t)
{
	if (t->encoder)
		sg_encoder_free(t->encoder);
	make_encoder(t);
	t->recording = sg_run.recording && t->encoder;
	t->id = sg_my_id();
	t->described = false;
	t->lock = (struct sg_lock){0};
	t->oldest = SG_NONE;
	give_buffer(t);
	__sg_thread.ticket = 0;
}

// The thread has ended, and its thread-local memory is gone.
static bool gone(const struct sg_thread *t)
{
	int error = errno;
	bool is = t != self && syscall(SYS_tgkill, getpid(), t->id, 0) != 0 && errno == ESRCH;
	errno = error;
	return is;
}

// The node can be reused for another thread. Until then, it has no thread.
static void leave_node(struct sg_thread *t)
{
	sg_free_encoder(t);
	sg_store(&t->hot, 0);
	t->id = 0;
	sg_store(&t->oldest, SG_NONE);
	sg_store(&t->live, 0);
}

// Returns the end of the words that an ended thread has written. After it, there is only
// SG_UNWRITTEN.
static const uint64_t *end_of_words(const struct sg_thread *t)
{
	const uint64_t *end = t->buffer + SG_MOST_WORDS;
	while (end > t->from && end[-1] == SG_UNWRITTEN)
		end--;
	return end;
}

// Does the work of end_thread for a thread that ended without calling it.
static void bury(struct sg_thread *t)
{
	consume(t, end_of_words(t));
	if (t->recording && t->encoder) {
		uint64_t step[] = {take_ticket(t, sg_load(&__sg_clock)) << 1 | 1, (uint64_t)(uintptr_t)&sg_own[sg_thread_end]};
		sg_encode(t->encoder, step, step + 2);
		write_chunk(t, SG_NONE);
	}
	sg_unmap(t->signal_stack, t->signal_stack_bytes);
	t->signal_stack = 0;
	leave_node(t);
}

SG_API void sg_drain(struct sg_thread *t)
{
	if (gone(t)) {
		bury(t);
		return;
	}
	uint64_t oldest = sg_load(&t->oldest);
	const struct __sg_thread *hot = t == self ? &__sg_thread : t->hot;
	if (hot) {
		oldest = hot->ticket;
		consume(t, hot->cursor);
	}
	if (t->encoder && t->recording)
		write_chunk(t, t != self ? oldest : SG_NONE); // another thread may be writing a step with this ticket at the moment
}

// ---- threads

static bool claim(struct sg_thread *t)
{
	uint32_t no = 0;
	return __atomic_compare_exchange_n(&t->live, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// A thread's end can be unnoticed only if the thread was about to end.
static void bury_if_gone(struct sg_thread *t)
{
	if (!sg_load(&t->live) || sg_load(&t->hot) || !gone(t))
		return;
	sg_acquire(&t->lock);
	if (sg_load(&t->live) && gone(t))
		bury(t);
	sg_release(&t->lock);
}

static struct sg_thread *new_node(void)
{
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next) {
		bury_if_gone(t);
		if (claim(t))
			return t;
	}
	struct sg_thread *t = sg_map(sizeof *t);
	if (!t)
		return 0;
	t->live = 1;
	t->oldest = SG_NONE;
	t->next = sg_load(&sg_run.threads);
	while (!__atomic_compare_exchange_n(&sg_run.threads, &t->next, t, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return t;
}

static bool equip(struct sg_thread *t)
{
	static uint32_t last;
	sg_acquire(&t->lock);
	t->number = __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
	t->recording = sg_load(&sg_run.recording);
	t->id = sg_my_id();
	t->stack = sg_my_stack();
	t->described = false;
	t->rounds = 0;
	t->open_regions = 0;
	if (!t->buffer)
		t->buffer = sg_map(sg_buffer_bytes);
	bool equipped = t->buffer;
	if (equipped)
		make_encoder(t);
	else
		leave_node(t);
	sg_release(&t->lock);
	return equipped;
}

// The cursor and t->from are set to the buffer at the same time, for threads that drain the buffer.
static void open_buffer(struct sg_thread *t)
{
	sg_acquire(&t->lock);
	give_buffer(t);
	sg_store(&t->hot, &__sg_thread);
	sg_release(&t->lock);
}

static void begin_thread(void)
{
	outside = true;
	take_buffer();
	sg_start();
	struct sg_thread *t = new_node();
	if (!t || !equip(t))
		return; // no memory: the thread's steps are lost
	pthread_setspecific(at_thread_end, t);
	sg_signal_stack(t, true);
	self = t;
	outside = false;
	open_buffer(t);
	if (t->recording)
		sg_step(&sg_own[sg_thread_start], sg_parent ? sg_parent : t->number);
}

static void end_thread(struct sg_thread *t)
{
	struct sg_outside before;
	sg_step(&sg_own[sg_thread_end], 0);
	sg_enter(&before);
	sg_signal_stack(t, false);
	sg_acquire(&t->lock);
	sg_drain(t);
	outside = true;
	self = 0;
	take_buffer();
	leave_node(t);
	sg_release(&t->lock);
	sg_bump_clock();
	sg_leave(&before);
}

// There may be no further round, if the thread began in one of its own destructors. From now on,
// other threads do not access its thread-local memory, and read its further steps from its buffer.
static void expect_end(struct sg_thread *t)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_acquire(&t->lock);
	consume(t, __sg_thread.cursor);
	sg_store(&t->hot, 0);
	sg_release(&t->lock);
	sg_leave(&before);
}

// Other destructors of the thread may run code of the program, so this one waits for the last
// round.
static void thread_ends(void *node)
{
	struct sg_thread *t = node;
	if (t != self)
		return; // a process that fork has copied
	if (++t->rounds == destructor_rounds) {
		end_thread(t);
		return;
	}
	expect_end(t);
	pthread_setspecific(at_thread_end, t);
}

// Empties this thread's buffer, and applies a change of the recording state.
static void turn(struct sg_thread *t)
{
	const uint64_t *cursor = __sg_thread.cursor;
	sg_acquire(&t->lock);
	t->busy = true;
	take_buffer();
	consume(t, cursor);
	bool record = sg_load(&sg_run.recording);
	if (t->recording && t->encoder) {
		bool far = sg_load(&__sg_clock) - sg_load(&t->oldest) > farthest_ticket && sg_load(&t->oldest) != SG_NONE;
		if (!record || far || sg_encoder_full(t->encoder))
			write_chunk(t, SG_NONE);
		else if (sg_encoder_empty(t->encoder))
			sg_store(&t->oldest, SG_NONE);
		if (sg_run.settings.sliced)
			sg_bump_clock();
	}
	t->recording = record && t->encoder;
	give_buffer(t);
	t->busy = false;
	sg_release(&t->lock);
}

static __attribute__((noinline)) void make_room(void)
{
	struct sg_outside before;
	int error = errno;
	sg_enter(&before);
	if (!self)
		begin_thread();
	else
		turn(self);
	sg_leave(&before);
	errno = error;
}

static __attribute__((noinline)) void in_bin(void)
{
	if (!sg_load(&sg_run.over))
		__atomic_fetch_add(&sg_run.lost, 1, __ATOMIC_RELAXED);
	__sg_thread.cursor = bin;
}

// The words are written one by one, because a handler may empty the buffer at any time, and reuse the
// words that are already written.
static void give_up(const struct sg_thread *t, uint64_t *at, uint64_t words)
{
	volatile uint64_t *word = at;
	if (!t || at < t->buffer || at + words > t->buffer + SG_MOST_WORDS)
		return; // the first step of the thread, or a step that cannot be recorded
	while (words-- > 0)
		*word++ = SG_UNUSED;
}

__attribute__((preserve_most)) void __sg_more(uint64_t words, uint64_t *at)
{
	struct __sg_thread *hot = &__sg_thread;
	give_up(self, at, words);
	if (outside || (self && self->busy)) {
		in_bin();
		return;
	}
	if (!self || hot->cursor + words + 1 > hot->end || self->recording != sg_run.recording)
		make_room();
	struct sg_thread *t = self;
	if (!t) {
		in_bin();
		return;
	}
	uint64_t clock = sg_load(&__sg_clock);
	if (!t->recording) {
		hot->ticket = clock;
		return;
	}
	if (hot->ticket == clock && sg_load(&t->oldest) != SG_NONE)
		return;
	uint64_t ticket = take_ticket(t, clock);
	hot->ticket = ticket;
	*__sg_reserve(1) = ticket << 1 | 1;
}

// ---- steps that the runtime itself generates

static uint64_t *step(const struct __sg_block *b)
{
	uint64_t words = 1 + b->values, *end = __sg_thread.end, *at = __sg_reserve(words);
	if (at + words > end || sg_load(&__sg_clock) != __sg_thread.ticket) {
		__sg_more(words, at);
		at = __sg_reserve(words);
	}
	at[0] = (uint64_t)(uintptr_t)b;
	__atomic_signal_fence(__ATOMIC_SEQ_CST); // the block comes first
	return at + 1;
}

SG_API void sg_step(const struct __sg_block *b, uint64_t value)
{
	uint64_t *values = step(b);
	if (b->values)
		values[0] = value;
}

static void range_step(const struct __sg_block *b, uint64_t address, uint64_t bytes)
{
	uint64_t *values = step(b);
	values[0] = address;
	values[1] = bytes;
}

void __sg_masked(const struct __sg_block *b, uint64_t address, uint64_t mask, uint32_t lanes, uint32_t lane_bytes)
{
	if (lanes < 64)
		mask &= (UINT64_C(1) << lanes) - 1;
	while (mask) {
		int first = __builtin_ctzll(mask);
		uint64_t shifted = mask >> first;
		int run = ~shifted ? __builtin_ctzll(~shifted) : 64;
		range_step(b, address + (uint64_t)first * lane_bytes, (uint64_t)run * lane_bytes);
		if (first + run == 64)
			return;
		mask &= ~UINT64_C(0) << (first + run);
	}
}

void __sg_lanes(const struct __sg_block *b, const uint64_t *addresses, uint64_t mask, uint32_t lanes, uint32_t lane_bytes)
{
	for (uint32_t i = 0; i < lanes; i++)
		if (mask >> i & 1)
			range_step(b, addresses[i], lane_bytes);
}

// ---- caliper tags

static struct {
	char *text; // all texts, each followed by a zero
	size_t bytes, room;
	uint64_t count;
} tags;

static bool keep_tag(const char *tag, size_t bytes)
{
	if (tags.bytes + bytes > tags.room) {
		size_t wanted = 2 * tags.room + bytes + 4096;
		void *moved = sg_remap(tags.text, tags.room, wanted);
		if (!moved)
			return false;
		tags.text = moved;
		tags.room = wanted;
	}
	memcpy(tags.text + tags.bytes, tag, bytes);
	tags.bytes += bytes;
	tags.count++;
	return true;
}

static void write_tags(uint64_t first, const char *text)
{
	struct sg_body body = {0};
	sg_put_uv(&body, first);
	sg_put_uv(&body, tags.count - first);
	for (uint64_t i = first; i < tags.count; i++, text += strlen(text) + 1)
		sg_put_str(&body, text);
	sg_file_frame(sg_run.file, "TAGS", &body);
}

static uint64_t tag_number(const char *tag)
{
	const char *at = tags.text;
	for (uint64_t i = 0; i < tags.count; i++, at += strlen(at) + 1)
		if (strcmp(at, tag) == 0)
			return i;
	if (!keep_tag(tag, strlen(tag) + 1))
		return 0;
	write_tags(tags.count - 1, tag);
	return tags.count - 1;
}

// ---- modules

SG_API struct __sg_block sg_own[sg_own_blocks] = {
	[sg_thread_start] = {.values = 1},
	[sg_region_begin] = {.values = 1},
};
static const uint8_t own_scale[2];
static struct __sg_module own_module = {
	.abi = SG_ABI,
	.blocks = sg_own_blocks,
	.block = sg_own,
	.scale = own_scale,
	.tables = sg_own_tables,
	.tables_bytes = sizeof sg_own_tables,
};

extern struct __sg_module *const __start___sg_modules[] __attribute__((weak, visibility("hidden")));
extern struct __sg_module *const __stop___sg_modules[] __attribute__((weak, visibility("hidden")));

static struct {
	struct __sg_module **at;
	size_t count, room;
} modules;

static bool keep_module(struct __sg_module *m)
{
	if (modules.count == modules.room) {
		size_t wanted = modules.room ? 2 * modules.room : 512;
		void *moved = sg_remap(modules.at, modules.room * sizeof m, wanted * sizeof m);
		if (!moved)
			return false;
		modules.at = moved;
		modules.room = wanted;
	}
	modules.at[modules.count++] = m;
	return true;
}

static void write_module(const struct __sg_module *m, uint64_t number)
{
	struct sg_body objects = {0};
	sg_file_module(sg_run.file, m->block, m->blocks, m->scale, m->tables, m->tables_bytes);
	if (m->objects == 0)
		return;
	sg_put_uv(&objects, number);
	sg_put_uv(&objects, m->objects);
	for (uint64_t i = 0; i < m->objects; i++)
		sg_put_uv(&objects, (uint64_t)(uintptr_t)m->object[i]);
	sg_file_frame(sg_run.file, "OBJS", &objects);
}

static void add_modules(struct __sg_module *const *first, struct __sg_module *const *end)
{
	for (; first < end; first++)
		if (*first && (*first)->abi == SG_ABI && keep_module(*first) && sg_run.file)
			write_module(*first, modules.count - 1);
}

SG_API bool sg_open(const char *path)
{
	static struct sg_fact facts[sg_most_facts];
	size_t count = sg_facts(facts, sg_run.settings.sliced);
	sg_run.file = sg_file_open(path, sg_run.settings.extent, facts, count);
	if (!sg_run.file)
		return false;
	for (size_t i = 0; i < modules.count; i++)
		write_module(modules.at[i], i);
	if (tags.count > 0)
		write_tags(0, tags.text);
	return true;
}

static void cannot_open(int error)
{
	struct sg_sentence s = {0};
	sg_add(&s, "stackglass: ");
	sg_add(&s, sg_run.settings.out);
	sg_add(&s, " cannot be written: ");
	sg_add_error(&s, error);
	sg_add(&s, "; the program runs without a trace");
	sg_say(&s);
	sg_run.told = true;
}

// Another process of the program is already writing the file, so this process uses its own file
// name.
static bool open_beside(void)
{
	struct sg_sentence path = {0};
	sg_add(&path, sg_run.settings.out);
	sg_add(&path, ".");
	sg_add_digits(&path, (uint64_t)getpid());
	if (path.length >= sizeof sg_run.settings.out)
		return false;
	memcpy(sg_run.settings.out, path.text, path.length + 1);
	return sg_open(sg_run.settings.out);
}

static void start_once(void)
{
	struct __sg_module *own = &own_module;
	sg_run.process = getpid();
	sg_say_prepare();
	sg_settings_read(&sg_run.settings);
	__sg_clock = 1; // no thread has this ticket yet
	add_modules(&own, &own + 1);
	add_modules(__start___sg_modules, __stop___sg_modules);
	if (!sg_open(sg_run.settings.out) && !(errno == EWOULDBLOCK && open_beside()))
		cannot_open(errno);
	sg_run.over = !sg_run.file;
	sg_run.recording = sg_run.file && !sg_run.settings.only_regions;
	pthread_key_create(&at_thread_end, thread_ends);
	sg_ending_prepare();
}

SG_API void sg_start(void)
{
	static bool started;
	int error = errno; // it is 0 when main begins
	if (__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		return;
	sg_acquire(&sg_run.modules);
	if (!started)
		start_once();
	__atomic_store_n(&started, true, __ATOMIC_RELEASE);
	sg_release(&sg_run.modules);
	errno = error;
}

static __attribute__((constructor(101))) void program_loaded(void)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_start();
	sg_leave(&before);
}

void __sg_register(struct __sg_module *const *first, struct __sg_module *const *end)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_start();
	sg_acquire(&sg_run.modules);
	add_modules(first, end);
	sg_run.libraries++;
	sg_release(&sg_run.modules);
	sg_leave(&before);
}

// Ensures that no buffer and no prediction refers to blocks of a module that is unloaded.
static void drain_all(void)
{
	sg_bump_clock();
	for (struct sg_thread *t = sg_load(&sg_run.threads); t; t = t->next) {
		sg_acquire(&t->lock);
		if (sg_load(&t->live) && sg_run.file)
			sg_drain(t);
		sg_release(&t->lock);
	}
	sg_bump_clock();
}

static void forget_module(const struct __sg_module *m)
{
	for (size_t i = 0; i < modules.count; i++)
		if (modules.at[i] == m)
			modules.at[i] = &own_module; // the numbers of modules do not change
	if (sg_run.file)
		sg_file_forget(sg_run.file, m->block);
}

void __sg_unregister(struct __sg_module *const *first, struct __sg_module *const *end)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_acquire(&sg_run.modules);
	drain_all();
	for (; first < end; first++)
		if (*first && (*first)->abi == SG_ABI)
			forget_module(*first);
	sg_run.libraries--;
	bool last = sg_run.exiting && sg_run.libraries == 0;
	sg_release(&sg_run.modules);
	if (last)
		sg_finish("exit", sg_run.status);
	sg_leave(&before);
}

// ---- calipers

static uint64_t find_tag(const char *tag)
{
	struct sg_outside before;
	sg_enter(&before);
	sg_acquire(&sg_run.modules);
	uint64_t number = sg_run.over ? 0 : tag_number(tag);
	sg_release(&sg_run.modules);
	sg_leave(&before);
	return number;
}

static void record(bool on)
{
	if (!sg_run.settings.only_regions || sg_load(&sg_run.over))
		return;
	sg_store(&sg_run.recording, on);
	sg_bump_clock(); // so that every thread notices the change
}

void __sg_begin(const char *tag)
{
	int error = errno;
	if (!self)
		make_room();
	if (!self || sg_load(&sg_run.over)) {
		errno = error;
		return;
	}
	bool counts = !sg_run.settings.region || strcmp(tag, sg_run.settings.region) == 0;
	self->open_regions = self->open_regions << 1 | counts;
	if (counts && __atomic_fetch_add(&sg_run.regions, 1, __ATOMIC_SEQ_CST) == 0)
		record(true);
	sg_step(&sg_own[sg_region_begin], find_tag(tag));
	errno = error;
}

void __sg_end(void)
{
	if (!self || sg_load(&sg_run.over))
		return;
	sg_step(&sg_own[sg_region_end], 0);
	bool counts = self->open_regions & 1;
	self->open_regions >>= 1;
	if (counts && __atomic_sub_fetch(&sg_run.regions, 1, __ATOMIC_SEQ_CST) == 0)
		record(false);
}

SG_API void sg_flush(void)
{
	struct sg_outside before;
	int error = errno;
	struct sg_thread *t = self;
	if (!t || t->busy || outside || !t->recording)
		return;
	sg_enter(&before);
	sg_acquire(&t->lock);
	uint64_t *cursor = __sg_thread.cursor;
	t->busy = true;
	take_buffer();
	consume(t, cursor);
	if (t->encoder)
		write_chunk(t, SG_NONE);
	give_buffer(t);
	t->busy = false;
	sg_release(&t->lock);
	sg_bump_clock();
	sg_leave(&before);
	errno = error;
}
