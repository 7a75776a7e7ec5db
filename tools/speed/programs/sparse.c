// irregular: products of a sparse matrix and a vector
#include <stdio.h>

#define ROWS 40000
#define IN_ROW 12

static int column[ROWS * IN_ROW];
static double value[ROWS * IN_ROW], x[ROWS], y[ROWS];

int main(void) {
	unsigned state = 3;
	for (int i = 0; i < ROWS * IN_ROW; i++) {
		state = state * 1664525u + 1013904223u;
		column[i] = (i / IN_ROW + (state >> 20) % 2000) % ROWS;
		value[i] = 1;
	}
	for (int i = 0; i < ROWS; i++)
		x[i] = i;
	for (int t = 0; t < 6; t++) {
		for (int i = 0; i < ROWS; i++) {
			double sum = 0;
			for (int k = i * IN_ROW; k < (i + 1) * IN_ROW; k++)
				sum += value[k] * x[column[k]];
			y[i] = sum;
		}
		for (int i = 0; i < ROWS; i++)
			x[i] = y[i] * 0.1;
	}
	printf("%g\n", x[7]);
}
