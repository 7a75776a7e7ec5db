// LZ4, as much of it as a writer needs: one frame with content size, content
// checksum and independent blocks.
//
// liblz4 would do, but this code runs inside of other programs: some bring an LZ4
// of their own under the same names, instrumented like the rest of them, and would
// be asked to compress their own trace; some have no malloc that may be called.
#ifndef STACKGLASS_PACK_H
#define STACKGLASS_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "system.h"

#define SG_PACK_SLOTS 8192
struct sg_packer {
	uint32_t seen[SG_PACK_SLOTS]; // where a hash of four bytes stood last
};

// The most bytes that a frame of that much content takes.
SG_API size_t sg_frame_bound(size_t content);
// Writes the frame to to, and gives its bytes.
SG_API size_t sg_frame(struct sg_packer *p, uint8_t *to, const uint8_t *content, size_t bytes);

#endif
