// LZ4, as far as a writer needs it: one frame with content size, content checksum and independent
// blocks.
//
// liblz4 is not used because this code runs inside other programs. Some programs contain their own
// LZ4 under the same names, instrumented like the rest of the program, which would then have to
// compress its own trace. In other programs, malloc must not be called.
#ifndef STACKGLASS_PACK_H
#define STACKGLASS_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "system.h"

#define SG_PACK_SLOTS 8192
struct sg_packer {
	uint32_t seen[SG_PACK_SLOTS]; // the last position of a hash of four bytes
};

// The maximum number of bytes of a frame with this amount of content.
SG_API size_t sg_frame_bound(size_t content);
// Writes the frame to to, and returns its length in bytes.
SG_API size_t sg_frame(struct sg_packer *p, uint8_t *to, const uint8_t *content, size_t bytes);

#endif
