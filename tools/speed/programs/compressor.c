// irregular: the search for repetitions of a compressor, as in gzip
#include <stdio.h>

#define BYTES 150000
#define WINDOW (1 << 15)

static unsigned char text[BYTES];
static int head[1 << 15], previous[WINDOW];

int main(void) {
	unsigned state = 11;
	for (int i = 0; i < BYTES; i++) { // words of an alphabet of ten, some of them again and again
		state = state * 1664525u + 1013904223u;
		text[i] = i > 999 && state >> 29 ? text[i - 1 - (state >> 12) % 999 % (i / 2)] : 'a' + (state >> 8) % 10;
	}
	for (int i = 0; i < 1 << 15; i++)
		head[i] = -1;
	long matched = 0;
	for (int i = 0; i + 3 < BYTES; i++) {
		int slot = (text[i] * 1031 + text[i + 1] * 33 + text[i + 2]) & ((1 << 15) - 1), best = 0;
		for (int at = head[slot], tries = 8; at >= 0 && i - at < WINDOW && tries; at = previous[at % WINDOW], tries--) {
			int length = 0;
			while (length < 32 && i + length < BYTES && text[at + length] == text[i + length])
				length++;
			if (length > best)
				best = length;
		}
		previous[i % WINDOW] = head[slot];
		head[slot] = i;
		matched += best;
	}
	printf("%ld\n", matched);
}
