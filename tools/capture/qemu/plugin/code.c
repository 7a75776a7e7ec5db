#include "plugin.h"

#include <string.h>

#include "../../runtime/words.h"

// The form of blocks in the tables (core/trace/sgt/FORMAT.md).
enum { synthetic = 1 << 5 };

enum {
	most_blocks = 1 << 23,
	most_insns = 1 << 23,
};

// The description of a block in the tables.
struct origin {
	uint64_t first, last; // addresses of instructions; for a site, only the first is used
	uint8_t kind, bytes;  // of the block's site
	uint8_t sites;
	uint8_t flags;
};

// Blocks are stored in the order of their creation. The index of a block is its number in the file.
// The scales of values are stored in the same order.
static struct {
	struct sg_lock lock;
	struct __sg_block *block;
	struct origin *origin;
	uint8_t *scale;
	uint32_t made, declared;
	uint32_t values, values_declared;
} code;

const struct __sg_block *sg_thread_start, *sg_thread_end;

// The caller holds the lock.
static const struct __sg_block *make_block(struct origin o, uint32_t values, uint8_t scale)
{
	if (code.made == most_blocks)
		return 0;
	struct __sg_block *b = &code.block[code.made];
	b->values = values;
	b->references = o.sites && o.kind <= sg_kind_store;
	code.origin[code.made] = o;
	if (values)
		code.scale[code.values++] = scale;
	sg_store(&code.made, code.made + 1);
	return b;
}

// ---- tables of known items, by address

// Open addressing; 0 marks an empty slot. The table grows when it is half full.
struct index {
	uint32_t *place;
	uint32_t used, room;
};

static struct sg_insn *insns;
static uint32_t insn_count;
static struct index insn_index, block_index;

static uint64_t hash(uint64_t first, uint64_t last) { return (first ^ last * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93); }

static uint32_t first_place(const struct index *x, uint64_t h) { return (uint32_t)(h >> 32) & (x->room - 1); }

static void put(struct index *x, uint64_t h, uint32_t entry)
{
	uint32_t i = first_place(x, h);
	while (x->place[i])
		i = (i + 1) & (x->room - 1);
	x->place[i] = entry;
	x->used++;
}

static bool grow(struct index *x, uint64_t (*hash_of)(uint32_t))
{
	if (x->used * 2 < x->room)
		return true;
	struct index bigger = {.room = x->room ? 2 * x->room : 1 << 14};
	if (!(bigger.place = sg_map(bigger.room * sizeof *bigger.place)))
		return false;
	for (uint32_t i = 0; i < x->room; i++)
		if (x->place[i])
			put(&bigger, hash_of(x->place[i]), x->place[i]);
	sg_unmap(x->place, x->room * sizeof *x->place);
	*x = bigger;
	return true;
}

static uint64_t hash_of_insn(uint32_t i) { return hash(insns[i].pc, 0); }
static uint64_t hash_of_block(uint32_t i) { return hash(code.origin[i].first, code.origin[i].last); }

static struct sg_insn *find_insn(uint64_t pc)
{
	const struct index *x = &insn_index;
	for (uint32_t i = first_place(x, hash(pc, 0)); x->place[i]; i = (i + 1) & (x->room - 1))
		if (insns[x->place[i]].pc == pc)
			return &insns[x->place[i]];
	return 0;
}

static struct sg_insn *make_insn(uint64_t pc)
{
	if (insn_count + 1 == most_insns)
		return 0;
	struct sg_insn *insn = &insns[++insn_count];
	insn->pc = pc;
	put(&insn_index, hash(pc, 0), insn_count);
	return insn;
}

struct sg_insn *sg_insn_at(uint64_t pc)
{
	sg_acquire(&code.lock);
	struct sg_insn *insn = 0;
	if (grow(&insn_index, hash_of_insn) && !(insn = find_insn(pc)))
		insn = make_insn(pc);
	sg_release(&code.lock);
	return insn;
}

static const struct __sg_block *find_block(uint64_t first, uint64_t last)
{
	const struct index *x = &block_index;
	for (uint32_t i = first_place(x, hash(first, last)); x->place[i]; i = (i + 1) & (x->room - 1)) {
		const struct origin *o = &code.origin[x->place[i]];
		if (o->first == first && o->last == last)
			return &code.block[x->place[i]];
	}
	return 0;
}

const struct __sg_block *sg_block_of(uint64_t first, uint64_t last)
{
	sg_acquire(&code.lock);
	const struct __sg_block *b = 0;
	if (grow(&block_index, hash_of_block) && !(b = find_block(first, last))) {
		b = make_block((struct origin){.first = first, .last = last}, 0, 0);
		if (b)
			put(&block_index, hash(first, last), (uint32_t)(b - code.block));
	}
	sg_release(&code.lock);
	return b;
}

const struct __sg_block *sg_meet(struct sg_insn *insn, unsigned direction, unsigned size_shift)
{
	sg_acquire(&code.lock);
	const struct __sg_block *b = insn->site[direction][size_shift];
	if (!b) {
		struct origin o = {
			.first = insn->pc,
			.kind = direction == sg_load_site ? sg_kind_load : sg_kind_store,
			.bytes = (uint8_t)(1 << size_shift),
			.sites = 1,
			.flags = synthetic,
		};
		b = make_block(o, 1, (uint8_t)(size_shift < 3 ? size_shift : 3));
		sg_store(&insn->site[direction][size_shift], b);
	}
	sg_release(&code.lock);
	return b;
}

bool sg_code_prepare(void)
{
	code.block = sg_map(most_blocks * sizeof *code.block);
	code.origin = sg_map(most_blocks * sizeof *code.origin);
	code.scale = sg_map(most_blocks);
	insns = sg_map(most_insns * sizeof *insns);
	if (!code.block || !code.origin || !code.scale || !insns)
		return false;
	// At the beginning of a chunk, block 0 counts as the previous block. A block that never runs
	// keeps this number when the other blocks are put into another order.
	make_block((struct origin){.flags = synthetic}, 0, 0);
	sg_thread_start = make_block((struct origin){.kind = sg_kind_thread_start, .sites = 1, .flags = synthetic}, 1, 0);
	sg_thread_end = make_block((struct origin){.kind = sg_kind_thread_end, .sites = 1, .flags = synthetic}, 0, 0);
	return true;
}

// ---- the tables of a MODL frame

enum {
	most_label = 2 + 16 + 1 + 2 + 16,
	most_table_bytes = 2 + most_label + 64, // of a block
};

static uint8_t *put_hex(uint8_t *to, uint64_t v)
{
	unsigned digits = v ? (67 - (unsigned)__builtin_clzll(v)) / 4 : 1;
	*to++ = '0';
	*to++ = 'x';
	while (digits-- > 0)
		*to++ = (uint8_t)"0123456789abcdef"[v >> 4 * digits & 15];
	return to;
}

// The label of a translation block consists of the addresses of its first and its last instruction.
static uint8_t *put_label(uint8_t *to, const struct origin *o)
{
	uint8_t text[most_label], *end = put_hex(text, o->first);
	*end++ = '-';
	end = put_hex(end, o->last);
	to = sg_uv(to, (uint64_t)(end - text));
	memcpy(to, text, (size_t)(end - text));
	return to + (end - text);
}

static uint8_t *put_zeros(uint8_t *to, int count)
{
	memset(to, 0, (size_t)count);
	return to + count;
}

static uint8_t *put_block(uint8_t *to, const struct origin *o, uint32_t label)
{
	to = sg_uv(to, 0); // function
	to = sg_uv(to, label);
	to = sg_uv(to, 0); // part
	to = sg_uv(to, o->flags);
	to = put_zeros(to, 7); // loop, depth, file, lines, successors, callee
	to = sg_uv(to, o->sites);
	if (o->sites) {
		to = sg_uv(to, o->kind);
		to = sg_uv(to, o->bytes);
		to = sg_uv(to, o->first);
		to = put_zeros(to, 6); // place, type, object, flags
	}
	return sg_uv(to, 0); // opcodes
}

static bool is_labelled(const struct origin *o) { return !(o->flags & synthetic); }

static size_t put_tables(uint8_t *to, const struct origin *from, const struct origin *end)
{
	uint8_t *begin = to;
	uint32_t labels = 0, label = 1;
	for (const struct origin *o = from; o < end; o++)
		labels += is_labelled(o);
	*to++ = 0; // uncompressed
	to = sg_uv(to, 1 + labels);
	to = sg_uv(to, 0); // string 0
	for (const struct origin *o = from; o < end; o++)
		if (is_labelled(o))
			to = put_label(to, o);
	to = put_zeros(to, 6); // name, options, base, end, uninstrumented, functions
	to = sg_uv(to, (uint64_t)(end - from));
	for (const struct origin *o = from; o < end; o++)
		to = put_block(to, o, is_labelled(o) ? label++ : 0);
	to = put_zeros(to, 2); // objects, instructions
	return (size_t)(to - begin);
}

void sg_declare(void)
{
	if (sg_load(&code.made) == sg_load(&code.declared))
		return;
	sg_acquire(&code.lock);
	uint32_t count = code.made - code.declared;
	size_t room = 64 + (size_t)count * most_table_bytes;
	uint8_t *tables = count ? sg_map(room) : 0;
	if (tables) {
		const struct origin *from = &code.origin[code.declared];
		size_t bytes = put_tables(tables, from, from + count);
		sg_file_module(sg_file, &code.block[code.declared], count, &code.scale[code.values_declared], tables, bytes);
		code.values_declared = code.values;
		sg_store(&code.declared, code.made);
		sg_unmap(tables, room);
	}
	sg_release(&code.lock);
}
