// Codes the steps of one thread into chunks (core/trace/sgt/FORMAT.md, "Chunks").
//
// Steps come as words, as instrumented code writes them (abi.h): a block's address,
// its values; ticket words (ticket << 1 | 1) before the steps that they are for.
// Every chunk has to begin with a ticket word.
//
// An encoder is its thread's own: calls for one encoder must not overlap.
#ifndef STACKGLASS_ENCODE_H
#define STACKGLASS_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "file.h"

struct sg_encoder;

// The most words that sg_encode takes at once, so that it need not ask for room
// at each step.
#define SG_MOST_WORDS 8192

SG_API struct sg_encoder *sg_encoder_new(struct sg_file *f, uint32_t thread);
SG_API void sg_encoder_free(struct sg_encoder *e);

// Encodes the words from at up to end. A step that is not whole (it ends too
// early, or a value is SG_UNWRITTEN) is dropped and counted, and so is what is no
// step at all.
SG_API void sg_encode(struct sg_encoder *e, const uint64_t *at, const uint64_t *end);

SG_API bool sg_encoder_empty(const struct sg_encoder *e);
// The chunk is long enough: flush it.
SG_API bool sg_encoder_full(const struct sg_encoder *e);
// Writes the chunk, if there are steps. Every chunk that comes later, of any
// thread, has tickets of at least floor. The next one begins with a ticket word.
SG_API bool sg_encoder_flush(struct sg_encoder *e, uint64_t floor);
// Steps that were dropped by sg_encode so far.
SG_API uint64_t sg_encoder_lost(const struct sg_encoder *e);

#endif
