#include "encode.h"

#include "pack.h"
#include "system.h"
#include "words.h"

// The prediction of a value (core/trace/sgt/FORMAT.md, "The coder's state").
struct prediction {
	uint64_t last, stride, link;
};

// The state of a block. All records are in one piece of memory, at the positions that
// sg_file_module has assigned. At the beginning of a chunk, they have to be cleared. A chunk uses
// few of them, so each record is cleared when it is first used.
struct record {
	uint64_t next;       // address of the block that followed last time
	uint64_t other;      // address of the block that followed before next changed
	uint64_t sure, pick; // one bit for each value
	uint64_t epoch;      // the chunk to which the record belongs
	const uint8_t *scale;
	struct prediction value[];
};

_Static_assert(sizeof(struct record) == 8 * SG_RECORD, "room for a record");
_Static_assert(sizeof(struct prediction) == 8 * SG_PREDICTION, "room for a prediction");

enum {
	// A chunk is flushed when its payload or its number of steps reaches this limit. The limit is
	// small, so that a killed run loses little and readers can share a trace evenly. It is large
	// enough that learning all predictions again does not matter.
	full_bytes = 1 << 20,
	full_steps = 1 << 22,

	met_slots = 2048,
	most_unfinished = 4, // as many handlers as interrupt each other

	// The maximum number of bytes that SG_MOST_WORDS words add to each part.
	most_control = 24 * SG_MOST_WORDS,
	most_values = 11 * SG_MOST_WORDS,
	most_tickets = 20 * SG_MOST_WORDS,

	control_room = full_bytes + most_control,
	value_room = full_bytes + most_values,
	ticket_room = full_bytes + most_tickets,
	payload_room = control_room + value_room + ticket_room,
};

struct sg_encoder {
	struct sg_file *file;
	uint32_t thread;

	uint64_t *state; // the records
	size_t state_words;
	uint64_t epoch;

	struct sg_range *ranges; // address ranges of blocks, ascending
	uint32_t range_count, range_room;
	uint32_t ranges_seen; // how many of the file's ranges were copied
	uint64_t generation;  // the generation of the file when they were copied
	struct sg_range range; // the range of the latest block
	uint64_t met[met_slots]; // blocks that have a record

	uint64_t before;   // word of the record of the previous step's block
	uint64_t previous; // the last value
	uint64_t run;      // expected steps that no token describes yet

	uint64_t steps, references, lost;
	uint64_t first_ticket, told_ticket, ticket; // of the chunk; the last ticket written; of the current steps
	uint64_t ticket_steps;                      // that the ticket part describes
	bool ticketed;
	bool begun;

	struct sg_extent extent;
	uint64_t earlier; // references of the steps before the chunk
	bool before_extent; // the steps of the chunk are left out

	struct unfinished {
		const uint64_t *at;
		uint32_t words;
	} unfinished[most_unfinished]; // the oldest first
	unsigned unfinished_count;

	struct __sg_block none; // represents block 0 if there is no block

	uint8_t *payload; // room for the three parts
	uint8_t *control, *value, *tickets;
	uint8_t *packed;
	struct sg_packer packer;
};

static size_t packed_room(void) { return SG_HEADROOM + sg_frame_bound(payload_room); }

// ---- the parts

static uint8_t *control_part(const struct sg_encoder *e) { return e->payload; }
static uint8_t *value_part(const struct sg_encoder *e) { return e->payload + control_room; }
static uint8_t *ticket_part(const struct sg_encoder *e) { return e->payload + control_room + value_room; }

// How a token identifies the block of a step.
enum { is_next, is_other, is_off };

// These functions are parts of a loop that handles each step of the program. Inlining all of them
// makes it 10 to 20 % faster.
#define INLINED static inline __attribute__((always_inline))

// The state while steps are encoded. It is a local variable, so that the compiler keeps it in
// registers: every byte that is written might change a field of the encoder.
struct state {
	struct record *before; // of the previous step's block
	uint64_t previous;     // the last value
	uint64_t run;          // expected steps that no token describes yet
	uint64_t steps, references;
	uint8_t *control, *value; // the ends of two parts
	bool unfinished;          // the next step has an unwritten value
};

// Writes the expected steps of the run and the step after them, whose block number may differ from
// the expected one by the given amount.
INLINED uint8_t *tell_step(uint8_t *to, uint64_t run, uint64_t misses, unsigned which, int64_t off)
{
	enum { long_run = 3 };
	uint64_t short_run = run < long_run ? run : long_run;
	to = sg_pv(to, misses << 4 | short_run << 2 | which);
	if (short_run == long_run)
		to = sg_pv(to, run - long_run);
	return which == is_off ? sg_pv(to, sg_zigzag(off)) : to;
}

// At the end of a chunk, the last step of a run becomes the step after it.
static void tell_run(struct sg_encoder *e)
{
	if (e->run > 0)
		e->control = tell_step(e->control, e->run - 1, 0, is_next, 0);
	e->run = 0;
}

static void tell_ticket(struct sg_encoder *e)
{
	if (e->steps > e->ticket_steps) {
		e->tickets = sg_pv(e->tickets, e->steps - e->ticket_steps);
		e->tickets = sg_pv(e->tickets, e->ticket - e->told_ticket);
		e->told_ticket = e->ticket;
	}
	e->ticket_steps = e->steps;
}

static void begin_ticket(struct sg_encoder *e, uint64_t ticket)
{
	tell_ticket(e);
	e->ticket = ticket;
	if (!e->ticketed)
		e->first_ticket = e->told_ticket = ticket;
	e->ticketed = true;
}

// The first ticket is the ticket of the first step. A ticket before it without any steps is
// omitted. A ticket may come after a later one if a handler took the later one while the program was
// taking the other. The steps after it then get the later ticket.
static void retake_ticket(struct sg_encoder *e, uint64_t ticket)
{
	if (e->steps == 0)
		e->ticketed = false;
	begin_ticket(e, ticket < e->ticket ? e->ticket : ticket);
}

INLINED uint8_t *tell_value(uint8_t *to, uint64_t d, unsigned scale)
{
	if (scale == 0)
		return sg_pv(to, sg_zigzag((int64_t)d));
	uint64_t low = d & ((1u << scale) - 1);
	uint64_t high = sg_zigzag((int64_t)d >> scale) << 1;
	to = sg_pv(to, high | (low != 0));
	return low ? sg_pv(to, low) : to;
}

// ---- the known blocks

static void insert_range(struct sg_encoder *e, struct sg_range r)
{
	uint32_t i = e->range_count++;
	for (; i > 0 && e->ranges[i - 1].first > r.first; i--)
		e->ranges[i] = e->ranges[i - 1];
	e->ranges[i] = r;
}

static bool more_ranges(struct sg_encoder *e)
{
	bool any = false;
	struct sg_range some[16];
	for (;;) {
		uint32_t all = sg_file_ranges(e->file, some, e->ranges_seen, 16);
		uint32_t got = all - e->ranges_seen < 16 ? all - e->ranges_seen : 16;
		if (got == 0)
			return any;
		if (e->range_count + got > e->range_room) {
			uint32_t wanted = 2 * e->range_room + 64;
			void *moved = sg_remap(e->ranges, e->range_room * sizeof *some, wanted * sizeof *some);
			if (!moved)
				return any;
			e->ranges = moved;
			e->range_room = wanted;
		}
		for (uint32_t i = 0; i < got; i++)
			if (some[i].first != some[i].end)
				insert_range(e, some[i]);
		e->ranges_seen += got;
		any = true;
	}
}

static bool within(const struct sg_range *r, uint64_t word)
{
	return word - r->first < r->end - r->first && (word - r->first) % sizeof(struct __sg_block) == 0;
}

static bool search_range(struct sg_encoder *e, uint64_t word)
{
	uint32_t low = 0, high = e->range_count; // the last range that begins at or before word
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (e->ranges[mid].first <= word)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || !within(&e->ranges[low - 1], word))
		return false;
	e->range = e->ranges[low - 1];
	return true;
}

// Reports whether the word is the address of a block. The program may have overwritten the buffer,
// and a signal handler may have left half a step there, so an address is used only if it is known
// to be a block.
static bool is_block(struct sg_encoder *e, uint64_t word)
{
	if (__builtin_expect(within(&e->range, word), 1))
		return true;
	return search_range(e, word) || (more_ranges(e) && search_range(e, word));
}

static void forget_ranges(struct sg_encoder *e)
{
	uint64_t generation = sg_file_generation(e->file);
	if (e->generation == generation)
		return;
	e->generation = generation;
	e->range_count = e->ranges_seen = 0;
	e->range = (struct sg_range){0};
}

// ---- records

static struct record *record_at(const struct sg_encoder *e, uint64_t word) { return (struct record *)(e->state + word); }

static bool grow_state(struct sg_encoder *e, size_t words)
{
	size_t wanted = e->state_words ? e->state_words : 1 << 14;
	while (wanted < words)
		wanted *= 2;
	void *moved = sg_remap(e->state, e->state_words * 8, wanted * 8);
	if (!moved)
		return false;
	e->state = moved;
	e->state_words = wanted;
	return true;
}

static void clear_record(struct sg_encoder *e, struct record *r, const struct __sg_block *b)
{
	uint32_t blocks = b->number - e->range.number;
	uint32_t values = (b->first_value - e->range.word - SG_RECORD * blocks) / SG_PREDICTION;
	memset(r, 0, sizeof *r + b->values * sizeof *r->value);
	r->next = r->other = (uint64_t)(uintptr_t)b;
	r->epoch = e->epoch;
	r->scale = e->range.scale + values;
}

// Remembers the blocks of the chunk by address, so that they need not be searched.
static uint32_t met_slot(uint64_t word) { return (uint32_t)(word / sizeof(struct __sg_block)) % met_slots; }

// Returns the record of a block that is_block has found; 0 if there is no memory.
static struct record *meet(struct sg_encoder *e, const struct __sg_block *b)
{
	size_t words = (size_t)b->first_value + SG_RECORD + SG_PREDICTION * b->values;
	if (words > e->state_words && !grow_state(e, words))
		return 0;
	struct record *r = record_at(e, b->first_value);
	if (r->epoch != e->epoch)
		clear_record(e, r, b);
	return r;
}

// ---- steps

// Returns a mask of the values that differ from their predictions. n is a constant if speed
// matters.
INLINED uint64_t compare(const struct record *r, const uint64_t *v, uint64_t previous, uint32_t n)
{
	uint64_t misses = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct prediction *p = &r->value[i];
		uint64_t strided = p->last + p->stride, linked = previous + p->link;
		uint64_t predicted = r->pick >> i & 1 ? linked : strided;
		misses |= (uint64_t)(v[i] != predicted) << i;
		previous = v[i];
	}
	return misses;
}

static bool unwritten(const uint64_t *v, uint64_t misses)
{
	for (; misses; misses &= misses - 1)
		if (v[__builtin_ctzll(misses)] == SG_UNWRITTEN)
			return true;
	return false;
}

static void unwrite(const uint64_t *from, const uint64_t *end)
{
	for (uint64_t *at = (uint64_t *)(uintptr_t)from; at < end; at++)
		*at = SG_UNWRITTEN;
}

// Keeps words for later. If too many pieces are kept, the oldest is dropped: a handler left it for
// ever by longjmp.
static void keep_unfinished(struct sg_encoder *e, const uint64_t *at, uint32_t words)
{
	if (e->unfinished_count == most_unfinished) {
		e->lost++;
		e->unfinished_count--;
		unwrite(e->unfinished->at, e->unfinished->at + e->unfinished->words);
		memmove(e->unfinished, e->unfinished + 1, e->unfinished_count * sizeof *e->unfinished);
	}
	e->unfinished[e->unfinished_count++] = (struct unfinished){at, words};
}

// Encodes the mispredicted values of a step, and updates the predictions of all values.
INLINED void tell_values(struct state *s, struct record *r, const uint64_t *v, uint32_t n, uint64_t misses)
{
	uint64_t pick = r->pick, sure = r->sure;
	for (uint32_t i = 0; i < n; i++) {
		struct prediction *p = &r->value[i];
		if (misses >> i & 1) {
			uint64_t d = v[i] - p->last;
			if (v[i] == (pick >> i & 1 ? p->last + p->stride : s->previous + p->link))
				pick ^= UINT64_C(1) << i;
			p->stride = sure >> i & 1 ? p->stride : d;
			p->link = v[i] - s->previous;
			s->value = tell_value(s->value, d, r->scale[i]);
		}
		p->last = s->previous = v[i];
	}
	r->pick = pick;
}

// Encodes a step that is not expected.
INLINED void tell(struct state *s, const struct __sg_block *b, struct record *r, const uint64_t *v, uint32_t n, uint64_t misses)
{
	const uint64_t word = (uint64_t)(uintptr_t)b;
	const struct __sg_block *next = (const struct __sg_block *)(uintptr_t)s->before->next;
	unsigned which = b == next ? is_next : word == s->before->other ? is_other : is_off;
	s->control = tell_step(s->control, s->run, misses, which, (int64_t)b->number - (int64_t)next->number);
	s->run = 0;
	if (which != is_next) {
		s->before->other = s->before->next;
		s->before->next = word;
	}
	tell_values(s, r, v, n, misses);
}

INLINED void expect(struct state *s, struct record *r, const uint64_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		r->value[i].last = s->previous = v[i];
	s->run++;
}

// Encodes steps of one block with n values. It ends after a step that is not expected, or that the
// same block does not follow, or before an unfinished step.
INLINED const uint64_t *encode_block(struct state *s, const struct __sg_block *b, struct record *r, const uint64_t *at,
                                     const uint64_t *end, int64_t n)
{
	const uint64_t word = (uint64_t)(uintptr_t)b;
	do {
		const uint64_t *v = at + 1, misses = compare(r, v, s->previous, (uint32_t)n);
		if (misses && unwritten(v, misses)) {
			s->unfinished = true;
			return at;
		}
		if (misses || word != s->before->next)
			tell(s, b, r, v, (uint32_t)n, misses);
		else
			expect(s, r, v, (uint32_t)n);
		r->sure = ~misses;
		s->before = r;
		s->steps++;
		s->references += b->references;
		at = v + n;
	} while (s->run && r->next == word && end - at > n && *at == word);
	return at;
}

// Encodes steps of blocks that the chunk already contains, and returns the position where they end: at
// the end, at another word, or at an unfinished step. The usual numbers of values are constants.
static const uint64_t *encode_steps(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	struct state s = {
		.before = record_at(e, e->before), .previous = e->previous, .run = e->run, .control = e->control, .value = e->value,
	};
	while (at < end && !s.unfinished) {
		const uint64_t word = *at;
		if (word != s.before->next && word != s.before->other && e->met[met_slot(word)] != word)
			break;
		const struct __sg_block *b = (const struct __sg_block *)(uintptr_t)word;
		struct record *r = record_at(e, b->first_value);
		const int64_t n = b->values;
		if (end - at <= n)
			break;
		switch (n) {
		case 0: at = encode_block(&s, b, r, at, end, 0); break;
		case 1: at = encode_block(&s, b, r, at, end, 1); break;
		case 2: at = encode_block(&s, b, r, at, end, 2); break;
		case 3: at = encode_block(&s, b, r, at, end, 3); break;
		case 4: at = encode_block(&s, b, r, at, end, 4); break;
		case 5: at = encode_block(&s, b, r, at, end, 5); break;
		case 6: at = encode_block(&s, b, r, at, end, 6); break;
		case 8: at = encode_block(&s, b, r, at, end, 8); break;
		default: at = encode_block(&s, b, r, at, end, n);
		}
	}
	e->before = (uint64_t)((uint64_t *)s.before - e->state);
	e->previous = s.previous;
	e->run = s.run;
	e->steps += s.steps;
	e->references += s.references;
	e->control = s.control;
	e->value = s.value;
	return at;
}

// Handles words that are not a step: returns the position where the next step may begin.
static const uint64_t *stray(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	e->lost++;
	do
		at++;
	while (at < end && (*at & 1) == 0 && !is_block(e, *at));
	return at;
}

static uint64_t latest(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

// Keeps words that are reserved, but not written yet. They may belong to several steps, because
// handlers interrupt handlers. While this thread looks for their end, the thread to which they belong
// may begin to write them. It writes the beginning of a step first, so if the words are unwritten even
// after their end was found, no step is cut in two.
static const uint64_t *keep_reserved(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	const uint64_t *past = at;
	while (past < end && latest(past) == SG_UNWRITTEN)
		past++;
	for (const uint64_t *word = at; word < past; word++)
		if (latest(word) != SG_UNWRITTEN)
			return at;
	keep_unfinished(e, at, (uint32_t)(past - at));
	return past;
}

// Before the first step of a chunk, the previous block is block 0.
static bool begin(struct sg_encoder *e)
{
	forget_ranges(e);
	more_ranges(e);
	e->epoch++;
	memset(e->met, 0, sizeof e->met);
	if (!e->state_words && !grow_state(e, SG_RECORD))
		return false;
	const struct __sg_block *zero = &e->none;
	for (uint32_t i = 0; i < e->range_count; i++)
		if (e->ranges[i].number == 0) {
			e->range = e->ranges[i];
			zero = (const struct __sg_block *)e->range.first;
		}
	if (zero != &e->none)
		return meet(e, zero) != 0;
	struct record *r = record_at(e, 0);
	*r = (struct record){.next = (uint64_t)(uintptr_t)zero, .other = (uint64_t)(uintptr_t)zero, .epoch = e->epoch};
	return true;
}

// Handles the word at which [encode_steps] has ended, and returns the position where the next step may
// begin: the same one if encode_steps can encode the step there now.
static const uint64_t *other(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	const uint64_t word = *at;
	if (word == SG_UNWRITTEN)
		return keep_reserved(e, at, end);
	if (word == SG_UNUSED)
		return at + 1;
	if (sg_is_ticket(word)) {
		retake_ticket(e, word >> 1);
		return at + 1;
	}
	const struct __sg_block *b = (const struct __sg_block *)(uintptr_t)word;
	struct record *r = is_block(e, word) ? meet(e, b) : 0;
	if (!r)
		return stray(e, at, end);
	const uint32_t n = b->values;
	if (end - at <= (int64_t)n) {
		e->lost++;
		return end;
	}
	uint64_t misses = compare(r, at + 1, e->previous, n);
	if (misses && unwritten(at + 1, misses)) {
		keep_unfinished(e, at, 1 + n);
		return at + 1 + n;
	}
	e->met[met_slot(word)] = word;
	return at;
}

static void reset(struct sg_encoder *e)
{
	e->earlier += e->references;
	e->control = control_part(e);
	e->value = value_part(e);
	e->tickets = ticket_part(e);
	e->before = e->previous = e->run = 0;
	e->steps = e->references = e->ticket_steps = 0;
	e->ticketed = e->begun = false;
}

// ---- the extent

static uint64_t references_so_far(const struct sg_encoder *e) { return e->earlier + e->references; }

static bool after_extent(const struct sg_encoder *e)
{
	const struct sg_extent *x = &e->extent;
	return x->count > 0 && references_so_far(e) >= x->after && references_so_far(e) - x->after >= x->count;
}

// Drops the steps so far, which end where the extent begins. The next step has the same ticket.
static bool enter_extent(struct sg_encoder *e)
{
	uint64_t ticket = e->ticket;
	bool ticketed = e->ticketed;
	reset(e);
	e->before_extent = false;
	e->begun = begin(e);
	if (ticketed)
		begin_ticket(e, ticket);
	return e->begun;
}

// Returns the end of the words that can be encoded together: all words, or the end of the next step if
// the extent may begin or end at one of the steps.
static const uint64_t *encode_until(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	uint64_t border = UINT64_MAX, most = (uint64_t)(end - at) * sg_file_most_references(e->file);
	if (e->before_extent)
		border = e->extent.after;
	else if (e->extent.count > 0 && __builtin_add_overflow(e->extent.after, e->extent.count, &border))
		border = UINT64_MAX;
	if (border == UINT64_MAX || border - references_so_far(e) > most || !is_block(e, *at))
		return end;
	uint32_t words = 1 + ((const struct __sg_block *)(uintptr_t)*at)->values;
	return end - at > words ? at + words : end;
}

void sg_encode(struct sg_encoder *e, const uint64_t *at, const uint64_t *end)
{
	if (!e->begun && !(e->begun = begin(e))) {
		e->lost++;
		return;
	}
	while (at < end && !after_extent(e)) {
		if (e->before_extent && references_so_far(e) >= e->extent.after && !enter_extent(e))
			return;
		const uint64_t *until = encode_until(e, at, end);
		at = encode_steps(e, at, until);
		if (at < until)
			at = other(e, at, end);
	}
}

void sg_encode_finished(struct sg_encoder *e)
{
	struct unfinished before[most_unfinished];
	unsigned count = e->unfinished_count;
	memcpy(before, e->unfinished, sizeof before);
	e->unfinished_count = 0;
	for (unsigned i = 0; i < count; i++) {
		const uint64_t *end = before[i].at + before[i].words;
		sg_encode(e, before[i].at, end);
		sg_encoder_clear(e, before[i].at, end);
	}
}

const uint64_t *sg_encoder_unfinished(const struct sg_encoder *e, const uint64_t *from, const uint64_t *end, const uint64_t **past)
{
	const uint64_t *first = end;
	for (unsigned i = 0; i < e->unfinished_count; i++) {
		const struct unfinished *u = &e->unfinished[i];
		if (u->at >= from && u->at < first) {
			first = u->at;
			*past = u->at + u->words;
		}
	}
	return first;
}

void sg_encoder_clear(const struct sg_encoder *e, const uint64_t *from, const uint64_t *end)
{
	const uint64_t *past = end;
	while (from < end) {
		const uint64_t *at = e ? sg_encoder_unfinished(e, from, end, &past) : end;
		unwrite(from, at);
		from = at < end ? past : end;
	}
}

// ---- chunks

struct sg_encoder *sg_encoder_new(struct sg_file *f, uint32_t thread)
{
	struct sg_encoder *e = sg_map(sizeof *e);
	if (!e)
		return 0;
	e->file = f;
	e->thread = thread;
	e->generation = sg_file_generation(f);
	e->extent = *sg_file_extent(f);
	e->before_extent = e->extent.after > 0;
	e->payload = sg_map(payload_room);
	e->packed = sg_map(packed_room());
	if (!e->payload || !e->packed) {
		sg_encoder_free(e);
		return 0;
	}
	reset(e);
	return e;
}

void sg_encoder_free(struct sg_encoder *e)
{
	sg_unmap(e->payload, payload_room);
	sg_unmap(e->packed, packed_room());
	sg_unmap(e->state, e->state_words * 8);
	sg_unmap(e->ranges, e->range_room * sizeof *e->ranges);
	sg_unmap(e, sizeof *e);
}

bool sg_encoder_empty(const struct sg_encoder *e) { return e->steps == 0; }

bool sg_encoder_holds(const struct sg_encoder *e) { return e->unfinished_count > 0; }

uint64_t sg_encoder_lost(const struct sg_encoder *e) { return e->lost + e->unfinished_count; }

static size_t payload_bytes(const struct sg_encoder *e)
{
	return (size_t)(e->control - control_part(e)) + (size_t)(e->value - value_part(e)) + (size_t)(e->tickets - ticket_part(e));
}

bool sg_encoder_full(const struct sg_encoder *e)
{
	return e->steps >= full_steps || payload_bytes(e) >= full_bytes || (e->steps > 0 && after_extent(e));
}

// Moves the three parts to adjacent positions.
static size_t join(struct sg_encoder *e, struct sg_chunk *c)
{
	uint8_t *to = e->payload;
	c->control_bytes = (size_t)(e->control - control_part(e));
	c->value_bytes = (size_t)(e->value - value_part(e));
	c->ticket_bytes = (size_t)(e->tickets - ticket_part(e));
	to += c->control_bytes;
	memmove(to, value_part(e), c->value_bytes);
	to += c->value_bytes;
	memmove(to, ticket_part(e), c->ticket_bytes);
	return (size_t)(to - e->payload) + c->ticket_bytes;
}

bool sg_encoder_flush(struct sg_encoder *e, uint64_t floor)
{
	if (e->steps == 0 || e->before_extent) {
		reset(e);
		return true;
	}
	tell_run(e);
	tell_ticket(e);
	struct sg_chunk c = {
		.thread = e->thread,
		.steps = e->steps,
		.references = e->references,
		.first_ticket = e->first_ticket,
		.last_ticket = e->told_ticket,
		.floor = floor,
	};
	size_t bytes = join(e, &c);
	uint8_t *frame = e->packed + SG_HEADROOM;
	bool written = sg_file_chunk(e->file, &c, frame, sg_frame(&e->packer, frame, e->payload, bytes));
	reset(e);
	return written;
}
