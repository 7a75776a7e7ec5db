// clean: threads with parts and sums of their own.
// options: -O3
#include <stdio.h>
#include <omp.h>
#define N 40000
static float x[N], y[N];

int main(void) {
	double sum = 0;
	#pragma omp parallel num_threads(4) reduction(+ : sum)
	{
		#pragma omp for schedule(static)
		for (int i = 0; i < N; i++)
			x[i] = i, y[i] = N - i;
		for (int step = 0; step < 30; step++) {
			#pragma omp for schedule(static)
			for (int i = 0; i < N; i++)
				y[i] += 0.25f * x[i];
		}
		#pragma omp for schedule(static)
		for (int i = 0; i < N; i++)
			sum += y[i];
	}
	printf("%g\n", sum);
}
