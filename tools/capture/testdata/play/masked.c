// Masked references.
#include "play.h"

int main(void)
{
	const struct __sg_block *b = &play_block[play_masked];
	uint64_t lanes[] = {0x50, 0x60, 0x70, 0x80};
	__sg_masked(b, 0x1000, 0xff, 8, 4);
	__sg_masked(b, 0x2000, 0x8d, 8, 4);
	__sg_masked(b, 0x3000, ~UINT64_C(0), 64, 1);
	__sg_masked(b, 0x4000, UINT64_C(1) << 63, 64, 1);
	__sg_masked(b, 0x5000, 0, 8, 4);
	__sg_masked(b, 0x6000, 0xf0, 4, 4); // no such lanes
	__sg_lanes(b, lanes, 0xd, 4, 8);
	load(7);
	return 0;
}
