// What instrumented code and the runtime agree on. The rewriter in core/ir
// writes LLVM IR to this; the runtime implements it.
//
// Instrumented code tells of *steps*: executions of a block, which is straight-line
// code without a call in it. It writes them as 64-bit words to its thread's
// buffer:
//
//	address of the block's struct __sg_block      (even)
//	its values, in the order of its sites         (block->values of them)
//
// At the beginning of a block it does, inline:
//
//	uint64_t *at = __sg_thread.cursor;
//	if (at + 1 + N > __sg_thread.end || __sg_clock != __sg_thread.ticket) {
//		__sg_more(1 + N);
//		at = __sg_thread.cursor;
//	}
//	at[0] = (uint64_t)&block;
//	__sg_thread.cursor = at + 1 + N;
//
// and then at[1 + i] = value i, just before the access or event itself (after it,
// where the value is a result, as of malloc). All of a thread's state is zero at
// first, so the first block of a thread calls __sg_more.
//
// The runtime puts *ticket* words in between: ticket << 1 | 1, odd. Room that is
// not yet written is filled with SG_UNWRITTEN, which is no address on any machine,
// so that a step that was begun and never ended (a crash, a longjmp out of a
// signal handler) can be told from a whole one.
#ifndef STACKGLASS_ABI_H
#define STACKGLASS_ABI_H

#include <stdint.h>

#define SG_ABI 1

#define SG_UNWRITTEN UINT64_C(0x57a6dead57a6dead)

struct __sg_block {
	uint32_t values;      // values of a step, at most 48
	uint32_t references;  // references among its rows
	uint32_t number;      // set by the runtime: its number in the file
	uint32_t first_value; // set by the runtime: index of its first value's prediction
};

// One for each compiled module. Its address stands in section __sg_modules, so
// that __start___sg_modules to __stop___sg_modules lists those of a program or
// shared library.
struct __sg_module {
	uint32_t abi;               // SG_ABI
	uint32_t blocks;            // number of blocks
	struct __sg_block *block;   // in the order of the tables
	const uint8_t *scale;       // scale of each value (core/trace/sgt/FORMAT.md), in order of blocks
	const uint8_t *tables;      // body of the module's MODL frame
	uint64_t tables_bytes;
	const void *const *object;  // address of each object of the tables; 0 where there is none
	uint64_t objects;
};

struct __sg_thread {
	uint64_t *cursor; // where the next step goes
	uint64_t *end;    // end of the buffer
	uint64_t ticket;  // the ticket of the steps being written
};

extern __thread struct __sg_thread __sg_thread __attribute__((tls_model("initial-exec")));

// The last ticket that any thread took, or the number of the time slice.
extern uint64_t __sg_clock;

// Makes room for that many words at the cursor and takes a ticket. Of the general
// registers it may change that of results. (It has none: before LLVM 17 a
// preserve_most function restores that register, too.)
#ifdef __clang__
void __sg_more(uint64_t words) __attribute__((preserve_most));
#endif

// Steps of a block that is one site of two values, address and bytes: one for
// each run of set bits of a mask (of lanes bits, one for lane_bytes bytes each),
// and one for each set bit. They stand between the steps of other blocks: the
// step before is whole, and the next one begins behind.
void __sg_masked(const struct __sg_block *block, uint64_t address, uint64_t mask, uint32_t lanes, uint32_t lane_bytes);
void __sg_lanes(const struct __sg_block *block, const uint64_t *addresses, uint64_t mask, uint32_t lanes, uint32_t lane_bytes);

// Calipers; what stackglass.h calls.
void __sg_begin(const char *tag);
void __sg_end(void);

// Make the modules of a shared library known when it is loaded, and forget them
// when it goes.
void __sg_register(struct __sg_module *const *first, struct __sg_module *const *end);
void __sg_unregister(struct __sg_module *const *first, struct __sg_module *const *end);

#endif
