// What a trace cannot tell: a region within another one, whose threads the runtime decides
// about, and a loop whose schedule OMP_SCHEDULE says.
#include <stdio.h>

#define N 64

static double a[N], b[N];

static double inner(int from)
{
	double sum = 0;
#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < N; i++)
		sum += a[(i + from) % N];
	return sum;
}

int main(void)
{
#pragma omp parallel
	{
#pragma omp for schedule(runtime)
		for (int i = 0; i < N; i++)
			a[i] = i;
#pragma omp for schedule(static)
		for (int i = 0; i < 4; i++)
			b[i] = inner(i);
	}
	printf("%g\n", b[0] + b[3]);
	return 0;
}
