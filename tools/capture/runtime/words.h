// Encodes integers as in the container (core/trace/sgt/FORMAT.md, "Integers").
#ifndef STACKGLASS_WORDS_H
#define STACKGLASS_WORDS_H

#include <stdint.h>
#include <string.h>

static inline uint8_t *sg_u32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
	return to + 4;
}

static inline uint8_t *sg_u64(uint8_t *to, uint64_t v)
{
	sg_u32(to, (uint32_t)v);
	return sg_u32(to + 4, (uint32_t)(v >> 32));
}

// At most 10 bytes.
static inline uint8_t *sg_uv(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)v | 0x80;
	*to++ = (uint8_t)v;
	return to;
}

// At most 9 bytes. May write 9 bytes even if it uses fewer.
static inline uint8_t *sg_pv(uint8_t *to, uint64_t v)
{
	if (__builtin_expect(v < 0x80, 1)) {
		*to = (uint8_t)(2 * v + 1);
		return to + 1;
	}
	unsigned more = (63 - (unsigned)__builtin_clzll(v)) / 7; // number of bytes after the first
	if (more >= 8) {
		*to = 0;
		return sg_u64(to + 1, v);
	}
	sg_u64(to, (2 * v + 1) << more);
	return to + 1 + more;
}

static inline uint64_t sg_zigzag(int64_t d) { return (uint64_t)d << 1 ^ (uint64_t)(d >> 63); }

#endif
