// The interface between instrumented code and the runtime. The rewriter in core/ir generates LLVM
// IR that uses it, and the runtime implements it.
//
// Instrumented code records *steps*. A step is an execution of a block, which is straight-line code
// without calls. The code writes steps as 64-bit words to the buffer of its thread:
//
//	address of the block's struct __sg_block      (even)
//	its values, in the order of its sites         (block->values of them)
//
// At the beginning of a block, inline code executes:
//
//	uint64_t *end = __sg_thread.end, *at = __sg_reserve(1 + N);
//	if (at + 1 + N > end || __sg_clock != __sg_thread.ticket) {
//		__sg_more(1 + N, at);
//		at = __sg_reserve(1 + N);
//	}
//	at[0] = (uint64_t)&block;
//
// Then it executes at[1 + i] = value i, just before the access or event (or after it, if the value
// is a result, for example of malloc). The state of a thread is initially zero, so the first block
// of a thread calls __sg_more. The comment at the beginning of runtime.h explains why a signal
// handler may run between any two of these instructions.
//
// The runtime inserts *ticket* words: ticket << 1 | 1, which is odd. Words that have not been written
// contain SG_UNWRITTEN, which is not a valid address on any machine. An incomplete step (during a
// signal handler, after a crash, or after a longjmp out of a signal handler) can thus be distinguished
// from a complete one. Words that were reserved but are not needed contain SG_UNUSED.
#ifndef STACKGLASS_ABI_H
#define STACKGLASS_ABI_H

#include <stdint.h>

#define SG_ABI 2

#define SG_UNWRITTEN UINT64_C(0x57a6dead57a6dead)
#define SG_UNUSED UINT64_C(1) // ticket 0, which does not exist

struct __sg_block {
	uint32_t values;      // number of values of a step, at most 48
	uint32_t references;  // number of references among its rows
	uint32_t number;      // set by the runtime: its number in the file
	uint32_t first_value; // set by the runtime: index of its first value's prediction
};

// One for each compiled module. Its address is in section __sg_modules, so __start___sg_modules to
// __stop___sg_modules list the modules of a program or shared library.
struct __sg_module {
	uint32_t abi;               // SG_ABI
	uint32_t blocks;            // number of blocks
	struct __sg_block *block;   // in the order of the tables
	const uint8_t *scale;       // scale of each value (core/trace/sgt/FORMAT.md), in order of blocks
	const uint8_t *tables;      // body of the module's MODL frame
	uint64_t tables_bytes;
	const void *const *object;  // address of each object of the tables; 0: none
	uint64_t objects;
};

struct __sg_thread {
	uint64_t *cursor; // position of the next step
	uint64_t *end;    // end of the buffer
	uint64_t ticket;  // the ticket of the steps being written
};

extern __thread struct __sg_thread __sg_thread __attribute__((tls_model("initial-exec")));

// The last ticket that any thread has taken, or the number of the time slice.
extern uint64_t __sg_clock;

// Reserves words: moves the cursor, and returns its previous position. A signal handler must not run
// between the read and the write of the cursor, so this is a single instruction. On x86, it needs no
// lock prefix, because no other thread changes the cursor.
static inline uint64_t *__sg_reserve(uint64_t words)
{
	uintptr_t at = words * sizeof words;
#if defined __x86_64__ || defined __i386__
	__asm__ volatile("xadd %0, %1" : "+r"(at), "+m"(__sg_thread.cursor) : : "memory");
#else
	at = __atomic_fetch_add((uintptr_t *)&__sg_thread.cursor, at, __ATOMIC_RELAXED);
#endif
	return (uint64_t *)at;
}

// Gives up the words that were reserved at a position, makes room at the cursor for the same number
// of words, and takes a ticket. Of the general-purpose registers, it may change only the result
// register. (It returns nothing, but before LLVM 17 a preserve_most function restores that register,
// too.)
#ifdef __clang__
void __sg_more(uint64_t words, uint64_t *at) __attribute__((preserve_most));
#endif

// Records steps of a block that has a single site with two values, address and bytes: one step for
// each run of set bits of a mask (with lanes bits, one for each lane_bytes bytes), or one step for
// each set bit. These steps are between the steps of other blocks: the previous step is complete,
// and the next step begins after them.
void __sg_masked(const struct __sg_block *block, uint64_t address, uint64_t mask, uint32_t lanes, uint32_t lane_bytes);
void __sg_lanes(const struct __sg_block *block, const uint64_t *addresses, uint64_t mask, uint32_t lanes, uint32_t lane_bytes);

// Calipers, which stackglass.h calls.
void __sg_begin(const char *tag);
void __sg_end(void);

// Register the modules of a shared library when it is loaded, and remove them when it is unloaded.
void __sg_register(struct __sg_module *const *first, struct __sg_module *const *end);
void __sg_unregister(struct __sg_module *const *first, struct __sg_module *const *end);

#endif
