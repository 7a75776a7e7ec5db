#include "pack.h"

#include "words.h"

// ---- xxHash, 32 bits, seed 0: the checksum of the frame format

static const uint32_t prime1 = 2654435761u, prime2 = 2246822519u, prime3 = 3266489917u, prime4 = 668265263u,
                      prime5 = 374761393u;

static uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

static uint32_t read32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

static uint64_t read64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

static uint32_t lane(uint32_t sum, const uint8_t *p) { return rotate(sum + read32(p) * prime2, 13) * prime1; }

static uint32_t xxh32(const uint8_t *p, size_t bytes)
{
	const uint8_t *end = p + bytes;
	uint32_t h = prime5;
	if (bytes >= 16) {
		uint32_t a = prime1 + prime2, b = prime2, c = 0, d = 0 - prime1;
		for (; end - p >= 16; p += 16) {
			a = lane(a, p), b = lane(b, p + 4);
			c = lane(c, p + 8), d = lane(d, p + 12);
		}
		h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
	}
	h += (uint32_t)bytes;
	for (; end - p >= 4; p += 4)
		h = rotate(h + read32(p) * prime3, 17) * prime4;
	for (; p < end; p++)
		h = rotate(h + *p * prime5, 11) * prime1;
	h = (h ^ h >> 15) * prime2;
	h = (h ^ h >> 13) * prime3;
	return h ^ h >> 16;
}

// ---- blocks

enum {
	block_bytes = 1 << 20,
	least_match = 4,
	last_literals = 5, // the block format: a block ends in at least 5 literals,
	match_margin = 12, // and no match begins in its last 12 bytes
	farthest = 65535,
};

static uint32_t slot(uint32_t four) { return four * prime1 >> 19; } // 13 bits

static uint8_t *length(uint8_t *to, size_t left)
{
	for (; left >= 255; left -= 255)
		*to++ = 255;
	*to++ = (uint8_t)left;
	return to;
}

// Returns how many bytes from a on equal the bytes from b on, up to end.
static size_t alike(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
	const uint8_t *from = a;
	for (; end - a >= 8; a += 8, b += 8) {
		uint64_t differ = read64(a) ^ read64(b);
		if (differ)
			return (size_t)(a - from) + (size_t)__builtin_ctzll(differ) / 8;
	}
	for (; a < end && *a == *b; a++, b++)
		;
	return (size_t)(a - from);
}

static uint8_t *literals(uint8_t *to, uint8_t **token, const uint8_t *from, size_t count)
{
	*token = to++;
	**token = (uint8_t)((count < 15 ? count : 15) << 4);
	if (count >= 15)
		to = length(to, count - 15);
	memcpy(to, from, count);
	return to + count;
}

static uint8_t *match(uint8_t *to, uint8_t *token, size_t offset, size_t count)
{
	*to++ = (uint8_t)offset;
	*to++ = (uint8_t)(offset >> 8);
	count -= least_match;
	*token |= (uint8_t)(count < 15 ? count : 15);
	return count < 15 ? to : length(to, count - 15);
}

// Compresses one block greedily. It compares only with the last position that has the same hash of
// four bytes. The longer it finds nothing, the larger its steps are.
static uint8_t *pack(struct sg_packer *p, uint8_t *to, const uint8_t *from, size_t bytes)
{
	const uint8_t *at = from, *anchor = from, *end = from + bytes;
	uint8_t *token;
	memset(p->seen, 0, sizeof p->seen);
	for (size_t misses = 0; end - at > match_margin;) {
		uint32_t four = read32(at), *seen = &p->seen[slot(four)];
		const uint8_t *before = from + *seen;
		*seen = (uint32_t)(at - from);
		if (before >= at || at - before > farthest || read32(before) != four) {
			at += 1 + (misses++ >> 6);
			continue;
		}
		misses = 0;
		while (at > anchor && before > from && at[-1] == before[-1])
			at--, before--;
		size_t count = alike(at, before, end - last_literals);
		to = literals(to, &token, anchor, (size_t)(at - anchor));
		to = match(to, token, (size_t)(at - before), count);
		at += count;
		anchor = at;
	}
	return literals(to, &token, anchor, (size_t)(end - anchor));
}

// ---- the frame

size_t sg_frame_bound(size_t content)
{
	return content + content / 255 + (content / block_bytes + 1) * 32 + 32;
}

size_t sg_frame(struct sg_packer *p, uint8_t *to, const uint8_t *content, size_t bytes)
{
	uint8_t *begin = to;
	to = sg_u32(to, 0x184D2204);
	uint8_t *descriptor = to;
	*to++ = 1 << 6 | 1 << 5 | 1 << 3 | 1 << 2; // version, independent, content size, content checksum
	*to++ = 6 << 4;                            // blocks of at most 1 MiB
	to = sg_u64(to, bytes);
	*to = (uint8_t)(xxh32(descriptor, (size_t)(to - descriptor)) >> 8);
	to++;
	for (size_t done = 0; done < bytes;) {
		size_t part = bytes - done < block_bytes ? bytes - done : block_bytes;
		uint8_t *packed = pack(p, to + 4, content + done, part);
		uint32_t size = (uint32_t)(packed - to - 4);
		if (size >= part) {
			size = (uint32_t)part | 1u << 31; // it does not shrink, so it is stored uncompressed
			memcpy(to + 4, content + done, part);
			packed = to + 4 + part;
		}
		sg_u32(to, size);
		to = packed;
		done += part;
	}
	to = sg_u32(to, 0);
	to = sg_u32(to, xxh32(content, bytes));
	return (size_t)(to - begin);
}
