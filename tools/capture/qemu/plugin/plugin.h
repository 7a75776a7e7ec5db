// A plugin for QEMU's user mode that writes a trace of the emulated program.
//
//	plugin.c   what QEMU calls, and how a run ends
//	guest.c    the program's threads: their buffers, tickets, chunks
//	code.c     the program's instructions and blocks, and their tables
//	maps.c     the files that the program's code comes from
//
// The container itself is written by ../../runtime.
//
// An instruction may refer to memory once, several times (QEMU does an access of 16
// bytes as two of 8), or not at all (a condition, a fault), and a repeated one as
// often as it likes. So that the trace says exactly what happened, a step is one
// reference: there is a synthetic block for each instruction, direction and size, and
// one without values for each of QEMU's translation blocks, whose steps are the
// block entries. Sizes are not known before an instruction runs: blocks are made
// when they are first met, and a MODL frame tells of all new ones before the first
// chunk that may have one.
#ifndef STACKGLASS_QEMU_PLUGIN_H
#define STACKGLASS_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../../runtime/abi.h"
#include "../../runtime/encode.h"
#include "../../runtime/file.h"
#include "../../runtime/system.h"

#define sg_load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define sg_store(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

extern struct sg_file *sg_file; // the trace

// ---- code.c

enum { sg_load_site, sg_store_site, sg_directions };
enum { sg_size_shifts = 7 }; // 1 to 64 bytes

// One instruction.
struct sg_insn {
	uint64_t pc;
	const struct __sg_block *site[sg_directions][sg_size_shifts]; // 0: not met yet
};

// The kinds of core/trace that are in such a trace.
enum { sg_kind_load = 0, sg_kind_store = 1, sg_kind_thread_start = 13, sg_kind_thread_end = 14 };

extern const struct __sg_block *sg_thread_start, *sg_thread_end;

bool sg_code_prepare(void);
// The instruction there; 0 where there is no memory.
struct sg_insn *sg_insn_at(uint64_t pc);
// The translation block from one instruction to another; 0 likewise.
const struct __sg_block *sg_block_of(uint64_t first, uint64_t last);
// Makes the instruction's block of that direction and size; 0 likewise.
const struct __sg_block *sg_meet(struct sg_insn *insn, unsigned direction, unsigned size_shift);
// Makes sure that the file tells of all blocks that were made.
void sg_declare(void);

// ---- maps.c

// Makes sure that the file tells which file the code at that address comes from;
// QEMU has it at host.
void sg_code_at(uint64_t pc, const void *host);

// ---- guest.c

// No unwritten step: later than all tickets.
#define SG_NONE UINT64_MAX

// A thread of the program. Nodes are never freed: a thread that ends leaves its node
// to another one.
struct sg_guest {
	// The thread's own, while it runs.
	uint64_t *cursor; // where the next step goes
	uint64_t *end;    // of the buffer
	uint64_t ticket;  // of the steps being written

	struct sg_guest *next;
	uint32_t live;
	uint32_t number; // of the thread in the trace, from 1
	uint32_t id;     // the operating system's
	uint32_t parked; // it is in a system call: another thread may write its chunk
	uint64_t oldest; // lower bound of the tickets of steps that are not in the file, or SG_NONE

	struct sg_lock lock; // of what follows
	uint64_t *buffer;
	uint64_t *from; // words before are encoded
	struct sg_encoder *encoder;
	bool described; // its THRD frame is written
};

extern uint64_t sg_clock; // the last ticket that any thread took
extern __thread struct sg_guest *sg_self __attribute__((tls_model("initial-exec")));

// Makes room for that many words, and takes a ticket if another thread took one.
struct sg_guest *sg_more(unsigned vcpu, uint64_t words);
// A virtual processor comes up, on the thread that makes it.
void sg_guest_expected(unsigned vcpu);
void sg_guest_ends(void);
void sg_guest_parks(bool parked);
// Writes what all threads have; nothing is recorded until it goes on.
uint64_t sg_pause(void);
void sg_resume(void);
// The process is a copy: it records nothing.
void sg_forked(void);

// Writes one step of a block with one value, or with none.
static inline void sg_step(unsigned vcpu, const struct __sg_block *b, uint64_t value)
{
	struct sg_guest *g = sg_self;
	const uint32_t n = b->values;
	if (__builtin_expect(!g || g->cursor + 1 + n > g->end || __atomic_load_n(&sg_clock, __ATOMIC_RELAXED) != g->ticket, 0)) {
		g = sg_more(vcpu, 1 + n);
		if (!g)
			return;
	}
	uint64_t *at = g->cursor;
	at[0] = (uint64_t)(uintptr_t)b;
	at[n] = n ? value : at[0];
	__atomic_store_n(&g->cursor, at + 1 + n, __ATOMIC_RELEASE); // another thread may encode up to there
}

#endif
