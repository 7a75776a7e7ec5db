#define _GNU_SOURCE
#include "plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t sg_clock __attribute__((aligned(64)));
__thread struct sg_guest *sg_self __attribute__((tls_model("initial-exec")));

enum {
	buffer_bytes = 8 * SG_BUFFER_WORDS,
	// A chunk is written if this many tickets have been taken since it began. Chunks of other
	// threads then need not be held back for long to bring them into order.
	farthest_ticket = 1 << 22,
	most_vcpus = 1 << 12, // for which the creators are recorded
};

static struct sg_guest *guests;
static uint32_t last_number;
static uint32_t paused; // while set, nothing is recorded
static bool forked;
static uint64_t lost;
static uint32_t maker[most_vcpus];

static void bump_clock(void) { __atomic_fetch_add(&sg_clock, 1, __ATOMIC_SEQ_CST); }

// ---- tickets

// A lower bound is published before a ticket is taken. A thread that reads the clock and then all
// bounds (floor_of) therefore either sees the bound, or the ticket is later than the clock was.
static void take_ticket(struct sg_guest *g, uint64_t clock)
{
	if (sg_load(&g->oldest) == SG_NONE)
		sg_store(&g->oldest, clock + 1);
	g->ticket = __atomic_add_fetch(&sg_clock, 1, __ATOMIC_SEQ_CST);
	uint64_t *at = g->cursor;
	*at = g->ticket << 1 | 1;
	__atomic_store_n(&g->cursor, at + 1, __ATOMIC_RELEASE);
}

// Every step that any thread writes from now on, except the steps that g already has, has a ticket
// of at least this value.
static uint64_t floor_of(const struct sg_guest *g)
{
	uint64_t floor = sg_load(&sg_clock) + 1;
	for (struct sg_guest *other = sg_load(&guests); other; other = other->next) {
		uint64_t oldest = sg_load(&other->oldest);
		if (other != g && oldest < floor)
			floor = oldest;
	}
	return floor;
}

// ---- buffers; the caller holds the thread's lock

static void encode(struct sg_guest *g)
{
	uint64_t *end = __atomic_load_n(&g->cursor, __ATOMIC_ACQUIRE);
	if (g->encoder && g->from < end) {
		sg_declare();
		if (sg_encoder_empty(g->encoder) && !(*g->from & 1)) {
			// Another thread has written the chunk in the meantime.
			uint64_t again = g->ticket << 1 | 1;
			sg_encode(g->encoder, &again, &again + 1);
		}
		sg_encode(g->encoder, g->from, end);
	}
	g->from = end;
}

static void write_chunk(struct sg_guest *g)
{
	if (g->encoder)
		sg_encoder_flush(g->encoder, floor_of(g));
	sg_store(&g->oldest, SG_NONE);
}

// Writes the chunks of threads that have been waiting in the kernel since before this ticket.
// Without these chunks, later steps cannot be ordered. The next step of such a thread takes a new
// ticket, because the clock has advanced.
static void write_parked(const struct sg_guest *self, uint64_t before)
{
	for (struct sg_guest *g = sg_load(&guests); g; g = g->next) {
		if (g == self || sg_load(&g->oldest) >= before || !sg_load(&g->parked))
			continue;
		sg_acquire(&g->lock);
		if (sg_load(&g->parked) && sg_load(&g->oldest) < before) {
			encode(g);
			write_chunk(g);
			bump_clock();
		}
		sg_release(&g->lock);
	}
}

// Discards the contents of this thread's buffer. Its next step calls the runtime again, because the
// clock has advanced.
static void drop(struct sg_guest *g)
{
	sg_acquire(&g->lock);
	g->cursor = g->from = g->buffer;
	sg_release(&g->lock);
}

// Empties this thread's buffer.
static void turn(struct sg_guest *g)
{
	sg_acquire(&g->lock);
	uint64_t first = sg_load(&g->oldest);
	encode(g);
	bool written = g->encoder && (sg_encoder_full(g->encoder) || sg_load(&sg_clock) - first > farthest_ticket);
	if (written)
		write_chunk(g);
	g->cursor = g->from = g->buffer;
	sg_release(&g->lock);
	if (written)
		write_parked(g, first);
}

// ---- threads

static bool claim(struct sg_guest *g)
{
	uint32_t no = 0;
	return __atomic_compare_exchange_n(&g->live, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static struct sg_guest *new_guest(void)
{
	for (struct sg_guest *g = sg_load(&guests); g; g = g->next)
		if (claim(g))
			return g;
	struct sg_guest *g = sg_map(sizeof *g);
	if (!g || !(g->buffer = sg_map(buffer_bytes)))
		return 0;
	g->live = 1;
	g->oldest = SG_NONE;
	g->next = sg_load(&guests);
	while (!__atomic_compare_exchange_n(&guests, &g->next, g, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return g;
}

static struct sg_guest *begin(unsigned vcpu)
{
	struct sg_guest *g = new_guest();
	if (!g)
		return 0;
	sg_acquire(&g->lock);
	g->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_SEQ_CST);
	g->id = (uint32_t)syscall(SYS_gettid);
	g->cursor = g->from = g->buffer;
	g->end = g->buffer + SG_BUFFER_WORDS;
	g->ticket = 0;
	g->described = false;
	g->encoder = sg_encoder_new(sg_file, g->number);
	sg_release(&g->lock);
	sg_self = g;
	uint32_t by = vcpu < most_vcpus ? sg_load(&maker[vcpu]) : 0;
	sg_step(vcpu, sg_thread_start, by ? by : g->number);
	return g;
}

struct sg_guest *sg_more(unsigned vcpu, uint64_t words)
{
	struct sg_guest *g = sg_self;
	if (!g && (sg_load(&paused) || !(g = begin(vcpu))))
		return 0;
	if (sg_load(&paused)) {
		drop(g);
		return g;
	}
	if (g->cursor + words + 1 > g->end)
		turn(g);
	uint64_t clock = sg_load(&sg_clock);
	if (g->ticket != clock || sg_load(&g->oldest) == SG_NONE)
		take_ticket(g, clock);
	return g;
}

void sg_guest_expected(unsigned vcpu)
{
	if (vcpu < most_vcpus)
		sg_store(&maker[vcpu], sg_self ? sg_self->number : 0);
}

void sg_guest_parks(bool parked)
{
	struct sg_guest *g = sg_self;
	if (!g)
		return;
	if (parked) {
		sg_store(&g->parked, 1);
		return;
	}
	sg_acquire(&g->lock); // a thread that is writing its chunk has to finish first
	sg_store(&g->parked, 0);
	sg_release(&g->lock);
}

// Returns the name that the program gave to the thread; a name that QEMU gave does not count.
static void read_name(char *to, size_t room, uint32_t id)
{
	snprintf(to, room, "/proc/self/task/%u/comm", id);
	int fd = open(to, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, room - 1);
	if (fd >= 0)
		close(fd);
	to[n < 0 ? 0 : n] = 0;
	to[strcspn(to, "\n")] = 0;
	if (strncmp(to, "qemu-", 5) == 0)
		to[0] = 0;
}

static void describe(struct sg_guest *g)
{
	struct sg_body body = {0};
	char name[64];
	if (g->described)
		return;
	g->described = true;
	read_name(name, sizeof name, g->id);
	sg_put_uv(&body, g->number);
	sg_put_uv(&body, g->id);
	sg_put_str(&body, name);
	sg_put_uv(&body, 0); // the position of its stack is unknown
	sg_put_uv(&body, 0);
	sg_file_frame(sg_file, "THRD", &body);
}

void sg_guest_ends(void)
{
	struct sg_guest *g = sg_self;
	if (!g)
		return;
	sg_guest_parks(false);
	if (!sg_load(&paused)) {
		sg_step(0, sg_thread_end, 0);
		describe(g);
	}
	sg_acquire(&g->lock);
	sg_self = 0;
	if (!sg_load(&paused)) {
		encode(g);
		write_chunk(g);
	}
	if (g->encoder) {
		__atomic_fetch_add(&lost, sg_encoder_lost(g->encoder), __ATOMIC_SEQ_CST);
		sg_encoder_free(g->encoder);
		g->encoder = 0;
	}
	sg_release(&g->lock);
	sg_store(&g->live, 0);
}

uint64_t sg_pause(void)
{
	sg_store(&paused, 1);
	bump_clock(); // so that every step calls the runtime
	uint64_t all = sg_load(&lost);
	for (struct sg_guest *g = sg_load(&guests); g; g = g->next) {
		sg_acquire(&g->lock);
		if (sg_load(&g->live) && g->encoder) {
			describe(g);
			encode(g);
			write_chunk(g);
			all += sg_encoder_lost(g->encoder);
		}
		sg_release(&g->lock);
	}
	return all;
}

void sg_resume(void)
{
	if (forked)
		return;
	sg_store(&paused, 0);
}

void sg_forked(void)
{
	forked = true;
	paused = 1;
	if (sg_self)
		sg_self->lock = (struct sg_lock){0}; // of a thread that fork did not copy
}
