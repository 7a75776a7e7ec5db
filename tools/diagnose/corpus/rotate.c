// An image that is turned by a quarter, pixel by pixel down the columns of the source.
// options: -O0
#include <stdio.h>
#define W 768
#define H 512
static int source[H][W], turned[W][H];

static int pixel(int x, int y) {
	return source[y][x]; // planted: stride
}

static long shade(void) {
	long sum = 0;
#ifdef FIXED
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
#else
	for (int x = 0; x < W; x++)
		for (int y = 0; y < H; y++)
#endif
			sum += pixel(x, y) * 3;
	return sum;
}

int main(void) {
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			source[y][x] = x ^ y;
	printf("%ld\n", shade() + shade());
}
