// Plays instrumented code: what the rewriter would put into a program, by hand.
// blocks.h, which the test makes, has the blocks and their tables.
#ifndef PLAY_H
#define PLAY_H

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"
#include "blocks.h"

static struct __sg_module play_module = {
	.abi = SG_ABI,
	.blocks = sizeof play_block / sizeof *play_block,
	.block = play_block,
	.scale = play_scale,
	.tables = play_tables,
	.tables_bytes = sizeof play_tables,
};
static struct __sg_module *play_listed __attribute__((used, section("__sg_modules"))) = &play_module;

static inline uint64_t *enter(unsigned number)
{
	struct __sg_block *b = &play_block[number];
	uint64_t words = 1 + b->values, *end = __sg_thread.end, *at = __sg_reserve(words);
	if (at + words > end || __atomic_load_n(&__sg_clock, __ATOMIC_RELAXED) != __sg_thread.ticket) {
		__sg_more(words, at);
		at = __sg_reserve(words);
	}
	at[0] = (uint64_t)(uintptr_t)b;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return at + 1;
}

// A step of block 0, which loads eight bytes.
static inline void load(uint64_t address) { enter(0)[0] = address; }

#endif
