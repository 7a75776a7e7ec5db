// Writes the container (core/trace/sgt/FORMAT.md): frames, the table of the code, chunks, and the
// index. It does not depend on how steps were recorded, so the runtime of compiled programs and the
// plugin of an emulator share it.
//
//	struct sg_file *f = sg_file_open("out.sgt", (struct sg_extent){0}, facts, 2);
//	uint32_t first = sg_file_module(f, blocks, n, scales, tables, bytes);
//	struct sg_encoder *e = sg_encoder_new(f, thread);    // encode.h, one a thread
//	sg_encode(e, words, end); …
//	sg_encoder_flush(e, floor);                          // writes its chunk
//	sg_file_close(f, "exit", status, lost);
//
// Every function may be called by any thread; one lock orders the calls. No function calls malloc.
// After a write has failed, the file ends after its last complete frame, sg_file_error returns the
// reason, and later data is dropped.
#ifndef STACKGLASS_FILE_H
#define STACKGLASS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "system.h"

struct sg_file;

struct sg_fact {
	const char *name, *value;
};

// What is recorded. In each thread, the steps before reference number "after" are left out. If count
// is not 0, so are the steps that begin after count further references.
struct sg_extent {
	uint64_t max_bytes; // the file grows to at most this size; 0: no limit
	uint64_t after, count;
};

// Creates a file that begins with its SGT. frame. Facts about the extent are added.
// Returns 0 and sets errno if the file cannot be written: EWOULDBLOCK if another process is writing
// it.
SG_API struct sg_file *sg_file_open(const char *path, struct sg_extent extent, const struct sg_fact *facts, size_t count);

// Adds a module: its tables (the body of a MODL frame), its blocks, and the scale of each of their
// values, in order. Sets number and first_value of each block, and returns the number of the first
// block. Blocks and scales are used until the module is removed or the file is closed. Lookups are
// fastest if the blocks of a module are adjacent in one array.
SG_API uint32_t sg_file_module(struct sg_file *f, struct __sg_block *block, uint32_t blocks, const uint8_t *scale,
                        const uint8_t *tables, size_t tables_bytes);

// Removes blocks that are about to be unmapped. All of their steps must have been encoded, and the
// chunks of all encoders flushed.
SG_API void sg_file_forget(struct sg_file *f, const struct __sg_block *block);

// The body of a frame, while it is assembled.
struct sg_body {
	uint8_t *at;
	size_t bytes, room;
};

SG_API void sg_put_uv(struct sg_body *b, uint64_t v);
SG_API void sg_put_str(struct sg_body *b, const char *s);
SG_API void sg_put_bytes(struct sg_body *b, const void *from, size_t bytes);

// Adds a frame with this tag of four letters, and frees the body.
SG_API void sg_file_frame(struct sg_file *f, const char *tag, struct sg_body *body);

// Adds a chunk: its descriptor, and its frame with the given number of bytes. The SG_HEADROOM bytes
// before the frame may be overwritten.
#define SG_HEADROOM 192
struct sg_chunk {
	uint32_t thread;
	uint64_t steps, references, first_ticket, last_ticket, floor;
	size_t control_bytes, value_bytes, ticket_bytes;
};

SG_API bool sg_file_chunk(struct sg_file *f, const struct sg_chunk *c, uint8_t *frame, size_t bytes);

// Ends the file with DONE and INDX, or removes both so that the file continues. Nothing can be
// added to a closed file.
SG_API void sg_file_close(struct sg_file *f, const char *ended, int status, uint64_t lost);
SG_API bool sg_file_reopen(struct sg_file *f);
// Ends the file in the same way, but the next frame replaces the end.
SG_API void sg_file_mark(struct sg_file *f, const char *ended, uint64_t lost);
// Releases a file that another process continues to write, and its memory.
SG_API void sg_file_abandon(struct sg_file *f);

// Returns why nothing more is written: an errno; ECANCELED at the size limit; 0 if writing
// continues.
SG_API int sg_file_error(const struct sg_file *f);
SG_API uint64_t sg_file_references(const struct sg_file *f);
SG_API uint64_t sg_file_bytes(const struct sg_file *f);

SG_API const struct sg_extent *sg_file_extent(const struct sg_file *f);
// Returns the largest number of references of a block.
SG_API uint32_t sg_file_most_references(const struct sg_file *f);

// For encoders: the addresses of the blocks of a module, and the positions of their predictions.
struct sg_range {
	uintptr_t first, end;  // of the module's array of struct __sg_block
	uint32_t number, word; // number and first_value of the first block
	const uint8_t *scale;
};

// The predictions of a block are a record of SG_RECORD words and SG_PREDICTION words per value,
// which begins at word first_value of the encoder's memory.
enum { SG_RECORD = 6, SG_PREDICTION = 3 };

// Copies at most room ranges, starting with the range with number have, and returns the total
// number of ranges. The range of a removed module is empty.
SG_API uint32_t sg_file_ranges(struct sg_file *f, struct sg_range *to, uint32_t have, uint32_t room);
// Changes whenever a module has been removed.
SG_API uint64_t sg_file_generation(struct sg_file *f);

#endif
