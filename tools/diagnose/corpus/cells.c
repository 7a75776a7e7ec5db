// Threads visit particles in the order of their cells. Each particle fills one and a half lines, and
// the loop needs two of its fields.
#include <stdio.h>
#include <stdlib.h>
#define N 60000
#ifdef FIXED
static double *position;
static int *cell;
#define POSITION(i) position[i]
#define CELL(i) cell[i]
#else
struct particle {
	double position, velocity[3], force[3], charge;
	int number, cell;
	double rest[3];
};
static struct particle *particles;
#define POSITION(i) particles[i].position
#define CELL(i) particles[i].cell
#endif

int main(void) {
	double *density = calloc(N, sizeof *density), *sums = calloc(N, sizeof *sums);
#ifdef FIXED
	position = malloc(N * sizeof *position);
	cell = malloc(N * sizeof *cell);
#else
	particles = calloc(N, sizeof *particles);
#endif
	for (int i = 0; i < N; i++) {
		POSITION(i) = i;
		CELL(i) = (i * 7919u) % N;
		density[i] = i % 11;
	}
	for (int pass = 0; pass < 12; pass++) {
#pragma omp parallel for
		for (int i = 0; i < N; i++)
			sums[i] += density[CELL(i)] * POSITION(i); // planted: layout
	}
	printf("%g\n", sums[5]);
}
