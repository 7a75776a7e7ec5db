// A vertical filter of an image. The threads divide its columns among themselves.
#include <stdio.h>
#include <stdlib.h>
#define W 1000
#define H 1000
static float (*image)[W], (*out)[W];

static void filter(void) {
#ifdef FIXED
	#pragma omp parallel for
	for (int y = 1; y < H - 1; y++)
		for (int x = 0; x < W; x++)
#else
	#pragma omp parallel for
	for (int x = 0; x < W; x++)
		for (int y = 1; y < H - 1; y++)
#endif
			out[y][x] = 0.25f * image[y - 1][x] + 0.5f * image[y][x] + 0.25f * image[y + 1][x]; // planted: stride
}

int main(void) {
	image = malloc(sizeof *image * H);
	out = calloc(H, sizeof *out);
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			image[y][x] = x ^ y;
	for (int i = 0; i < 3; i++)
		filter();
	printf("%g\n", out[7][8]);
}
