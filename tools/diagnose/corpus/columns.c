// Sums of an image's columns, pixel by pixel down each column.
#include <stdio.h>
#include <stdlib.h>
#define W 1024
#define H 1024
static float image[H][W];
static float total[W];

static void sums(void) {
#ifdef FIXED
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			total[x] += image[y][x];
#else
	for (int x = 0; x < W; x++)
		for (int y = 0; y < H; y++)
			total[x] += image[y][x]; // planted: stride
#endif
}

int main(void) {
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			image[y][x] = x ^ y;
	sums();
	sums();
	printf("%g\n", total[7]);
}
