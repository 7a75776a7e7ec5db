// Steps of all blocks, by chance: strides, repeats, pointers that are followed, and
// surprises. What was done goes to standard output, five words a row that the
// trace must have.
#include "play.h"

static uint64_t seed;

static uint64_t chance(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static uint64_t last[64][48], stride[64][48];

static uint64_t value(unsigned block, unsigned i, uint64_t previous)
{
	uint64_t v = last[block][i] + stride[block][i];
	switch (chance(12)) {
	case 0: v = chance(1 << 20); break;
	case 1: v = seed; break; // of 64 bits
	case 2: stride[block][i] = chance(512) - 256; break;
	case 3: v = last[block][i]; break;
	case 4: v = previous + 16; break;
	case 5: v = previous + stride[block][i] * 8; break;
	}
	if ((block == play_range && i == 2) || (block == play_masked && i == 1))
		v &= 0x7fffffff; // the bytes of a range: one row
	return last[block][i] = v;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	seed = strtoull(argv[1], 0, 10) * 2 + 1;
	uint64_t previous = 0, block = 0, count = sizeof play_block / sizeof *play_block;
	for (uint64_t left = strtoull(argv[2], 0, 10); left > 0; left--) {
		if (chance(4) == 0)
			block = chance(count);
		uint64_t row[64] = {block}, *to = enter((unsigned)block);
		uint32_t n = play_block[block].values;
		for (uint32_t i = 0; i < n; i++)
			row[1 + i] = to[i] = previous = value((unsigned)block, i, previous);
		fwrite(row, 8, 1 + n, stdout);
	}
	return 0;
}
