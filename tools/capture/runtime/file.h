// Writes the container (core/trace/sgt/FORMAT.md): frames, the table of what code
// there is, chunks, the index. It knows nothing of how steps were found, so that
// the runtime of compiled programs and the plugin of an emulator share it.
//
//	struct sg_file *f = sg_file_open("out.sgt", 0, facts, 2);
//	uint32_t first = sg_file_module(f, blocks, n, scales, tables, bytes);
//	struct sg_encoder *e = sg_encoder_new(f, thread);    // encode.h, one a thread
//	sg_encode(e, words, end); …
//	sg_encoder_flush(e, floor);                          // writes its chunk
//	sg_file_close(f, "exit", status, lost);
//
// Every function may be called by any thread; one lock puts them in order. None
// calls malloc. Once writing fails, the file is cut behind its last whole frame,
// sg_file_error tells why, and what comes later is dropped.
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

// Begins a file with its SGT. frame. It grows to at most max_bytes, 0 for no
// limit. Gives 0, and errno, where it cannot be written: EWOULDBLOCK if another
// process is writing it.
SG_API struct sg_file *sg_file_open(const char *path, uint64_t max_bytes, const struct sg_fact *facts, size_t count);

// Adds a module: its tables (the body of a MODL frame), its blocks, and the scale
// of each of their values in order. Sets their number and first_value, and gives
// the number of the first. Blocks and scales are used until they are forgotten or
// the file is closed. Modules whose blocks lie in one array, one after the other,
// are looked up fastest.
SG_API uint32_t sg_file_module(struct sg_file *f, struct __sg_block *block, uint32_t blocks, const uint8_t *scale,
                        const uint8_t *tables, size_t tables_bytes);

// The blocks are about to be unmapped; every step of theirs has been encoded, and
// every encoder's chunk flushed.
SG_API void sg_file_forget(struct sg_file *f, const struct __sg_block *block);

// The body of a frame, while it is put together.
struct sg_body {
	uint8_t *at;
	size_t bytes, room;
};

SG_API void sg_put_uv(struct sg_body *b, uint64_t v);
SG_API void sg_put_str(struct sg_body *b, const char *s);
SG_API void sg_put_bytes(struct sg_body *b, const void *from, size_t bytes);

// Adds a frame of that tag, four letters, and frees the body.
SG_API void sg_file_frame(struct sg_file *f, const char *tag, struct sg_body *body);

// A chunk's descriptor, and its frame of bytes; before it there is SG_HEADROOM of
// room that may be overwritten.
#define SG_HEADROOM 192
struct sg_chunk {
	uint32_t thread;
	uint64_t steps, references, first_ticket, last_ticket, floor;
	size_t control_bytes, value_bytes, ticket_bytes;
};

SG_API bool sg_file_chunk(struct sg_file *f, const struct sg_chunk *c, uint8_t *frame, size_t bytes);

// Ends the file by DONE and INDX, or takes both back so that it goes on. A closed
// file takes no more.
SG_API void sg_file_close(struct sg_file *f, const char *ended, int status, uint64_t lost);
SG_API bool sg_file_reopen(struct sg_file *f);
// Ends the file in the same way, but it goes on: the next frame replaces the end.
SG_API void sg_file_mark(struct sg_file *f, const char *ended, uint64_t lost);
// Lets go of a file that another process goes on writing, and of its memory.
SG_API void sg_file_abandon(struct sg_file *f);

// Why nothing more is written: an errno; ECANCELED at the limit; 0 while it is.
SG_API int sg_file_error(const struct sg_file *f);
SG_API uint64_t sg_file_references(const struct sg_file *f);
SG_API uint64_t sg_file_bytes(const struct sg_file *f);

// For encoders: where the blocks of a module lie, and where their predictions do.
struct sg_range {
	uintptr_t first, end;  // of its array of struct __sg_block
	uint32_t number, word; // number and first_value of the first
	const uint8_t *scale;
};

// A block's predictions: a record of SG_RECORD words and SG_PREDICTION words a
// value, at word first_value of the encoder's.
enum { SG_RECORD = 6, SG_PREDICTION = 3 };

// Copies the ranges from number have on, at most room, and gives how many there
// are in all. A forgotten module's is empty.
SG_API uint32_t sg_file_ranges(struct sg_file *f, struct sg_range *to, uint32_t have, uint32_t room);
// Changes whenever a module was forgotten.
SG_API uint64_t sg_file_generation(struct sg_file *f);

#endif
