// A transform whose rows are a power of two long: the elements of a column share few sets.
#include <stdio.h>
#ifdef FIXED
#define PITCH (512 + 8)
#else
#define PITCH 512
#endif
#define ROWS 256
static double grid[ROWS][PITCH];

int main(void) {
	double sum = 0;
	for (int i = 0; i < ROWS; i++)
		grid[i][0] = i;
	for (int step = 0; step < 2000; step++)
		for (int i = 1; i < ROWS; i++)
			grid[i][0] = grid[i][1] + step; // planted: conflict
	sum = grid[9][0];
	printf("%g\n", sum);
}
