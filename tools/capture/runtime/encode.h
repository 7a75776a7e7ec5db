// Encodes the steps of one thread into chunks (core/trace/sgt/FORMAT.md, "Chunks").
//
// Steps are words as instrumented code writes them (abi.h): the address of a block, followed by its
// values. Ticket words (ticket << 1 | 1) precede the steps to which they apply. Every chunk must
// begin with a ticket word.
//
// An encoder belongs to one thread: calls for the same encoder must not overlap.
#ifndef STACKGLASS_ENCODE_H
#define STACKGLASS_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "file.h"

struct sg_encoder;

// The size of a thread's buffer, without the reserve.
#define SG_BUFFER_WORDS 8192
// The reserve after the end of a buffer: the words of the steps that are begun there by the program
// and by as many handlers as interrupt each other.
#define SG_RESERVE_WORDS 256
// The maximum number of words of one call of sg_encode, so that it need not check the available
// space at each step.
#define SG_MOST_WORDS (SG_BUFFER_WORDS + SG_RESERVE_WORDS)

SG_API struct sg_encoder *sg_encoder_new(struct sg_file *f, uint32_t thread);
SG_API void sg_encoder_free(struct sg_encoder *e);

// Encodes the words from at up to end. A step that ends too early is dropped and counted. So is
// anything that is not a step.
//
// Words that are SG_UNWRITTEN belong to unfinished steps: a signal handler interrupted the program
// between the reservation of the words and the store of the last value, and the handler's own steps
// filled the buffer. Or another thread encodes the steps of a thread that is running. The program
// writes these words when it continues. Until then, they must stay where they are.
SG_API void sg_encode(struct sg_encoder *e, const uint64_t *at, const uint64_t *end);
// Reports whether there are unfinished steps, which the program may have finished in the meantime.
SG_API bool sg_encoder_holds(const struct sg_encoder *e);
// Encodes the unfinished steps that the program has finished, after a ticket word, and clears them.
SG_API void sg_encode_finished(struct sg_encoder *e);
// Returns the first unfinished step in [from, end), and sets past to its end; or end.
SG_API const uint64_t *sg_encoder_unfinished(const struct sg_encoder *e, const uint64_t *from, const uint64_t *end, const uint64_t **past);
// Makes words SG_UNWRITTEN, except for unfinished steps. e may be 0.
SG_API void sg_encoder_clear(const struct sg_encoder *e, const uint64_t *from, const uint64_t *end);

static inline bool sg_is_ticket(uint64_t word) { return word & 1 && word != SG_UNWRITTEN && word != SG_UNUSED; }

SG_API bool sg_encoder_empty(const struct sg_encoder *e);
// Reports whether the chunk is long enough to be flushed.
SG_API bool sg_encoder_full(const struct sg_encoder *e);
// Writes the chunk if it contains steps. The tickets of all later chunks, of any thread, are at
// least floor. The next chunk begins with a ticket word.
SG_API bool sg_encoder_flush(struct sg_encoder *e, uint64_t floor);
// Returns the number of steps that were dropped so far, or are unfinished.
SG_API uint64_t sg_encoder_lost(const struct sg_encoder *e);

#endif
