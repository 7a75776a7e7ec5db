// OpenMP's constructs; the result does not depend on the number of threads.
#include <stdio.h>
#include <stdlib.h>

enum { n = 1000 };

static long fibonacci(int k)
{
	long x, y;
	if (k < 2)
		return k;
#pragma omp task shared(x) if (k > 8)
	x = fibonacci(k - 1);
#pragma omp task shared(y) if (k > 8)
	y = fibonacci(k - 2);
#pragma omp taskwait
	return x + y;
}

int main(void)
{
	double *list = malloc(n * sizeof *list), sum = 0;
	long in_critical = 0, found = 0;
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		list[i] = i;
#pragma omp parallel for schedule(dynamic, 7) reduction(+ : sum)
	for (int i = 0; i < n; i++)
		sum += list[i];
#pragma omp parallel num_threads(3)
	{
#pragma omp for schedule(guided)
		for (int i = 0; i < n; i++)
			list[i] *= 2;
#pragma omp critical(named)
		in_critical++;
#pragma omp barrier
#pragma omp for schedule(static, 10)
		for (int i = 0; i < n; i++)
			list[i] += 1;
#pragma omp single
		found = fibonacci(12);
	}
	for (int i = 0; i < n; i++)
		sum += list[i];
	printf("sum %g, critical %d, fibonacci %ld\n", sum, in_critical > 0, found);
	free(list);
	return 0;
}
