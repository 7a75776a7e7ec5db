// A field that the first thread fills and all threads then work on, each on its part.
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>
#define N 2400000

int main(void) {
	double *field = malloc(N * sizeof *field), *next = malloc(N * sizeof *next);
#ifdef FIXED
	#pragma omp parallel for num_threads(4) schedule(static)
#endif
	for (int i = 0; i < N; i++) {
		field[i] = i % 10; // planted: numa
		next[i] = 0;
	}
	for (int step = 0; step < 2; step++) {
		#pragma omp parallel for num_threads(4) schedule(static)
		for (int i = 0; i < N; i++)
			next[i] = 0.5 * field[i] + next[i] * next[i] / (field[i] + 1);
	}
	printf("%g\n", next[5]);
}
