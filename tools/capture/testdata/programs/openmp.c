#include <stdio.h>

static double a[1000], b[1000];

int main(void)
{
	double sum = 0;
	int tasks = 0;
#pragma omp parallel for
	for (int i = 0; i < 1000; i++)
		a[i] = i;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 10)
	for (int i = 0; i < 1000; i++) {
		b[i] = 2 * a[i];
		sum += b[i];
	}
#pragma omp parallel num_threads(3)
	{
#pragma omp critical
		tasks++;
#pragma omp barrier
#pragma omp single
		{
#pragma omp task
			tasks += 10;
#pragma omp taskwait
		}
	}
	printf("%g %d\n", sum, tasks);
	return 0;
}
