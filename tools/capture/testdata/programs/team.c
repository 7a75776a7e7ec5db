// What threads of a team share out in ways that do not hang on who is first.
#include <stdio.h>

#define N 103

static double a[N][7], b[N], c[N * 4];
static double *view = c; // loaded before a loop, by threads that have any of it
static int once, first, parts[3];

__attribute__((noinline)) static double row(double *r)
{
	double sum = 0;
	for (int j = 0; j < 7; j++)
		sum += r[j];
	return sum;
}

// A loop without a region of its own.
__attribute__((noinline)) static void orphan(int n)
{
#pragma omp for schedule(static, 5)
	for (int i = 0; i < n; i++)
		b[i] += row(a[i]);
}

__attribute__((noinline)) static void work(int n)
{
	double ours[N]; // on a stack, but not a thread's own
#pragma omp parallel
	{
		double mine[4] = {n, n};
#pragma omp for
		for (int i = 0; i < n; i++)
			ours[i] = row(a[i]) + mine[i % 4];
#pragma omp for
		for (int i = 0; i < n; i++)
			for (int j = 0; j < 7; j++)
				a[i][j] = i + j;
#pragma omp for schedule(static) nowait
		for (int i = n - 1; i > 2; i -= 2)
			b[i] = i;
#pragma omp for schedule(static, 4)
		for (int i = 0; i < n * 3; i++)
			c[i] += 1;
		orphan(n);
#pragma omp barrier
#pragma omp master
		first += n;
#pragma omp barrier
#pragma omp for collapse(2) schedule(static, 1)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < 3; j++)
				c[i * 3 + j] += a[i][j];
#pragma omp for
		for (int i = 0; i < 2; i++)
			view[i] += 1;
#pragma omp sections
		{
#pragma omp section
			parts[0] = 1;
#pragma omp section
			parts[1] = 2;
#pragma omp section
			parts[2] = 3;
		}
	}
	first += ours[n / 2] > 1;
}

int main(void)
{
	int n = N;
	for (int round = 0; round < 3; round++) {
		work(n);
#pragma omp parallel for
		for (int i = 0; i < n; i++)
			c[i] = c[i] * b[i];
#pragma omp parallel
#pragma omp master
		once++;
	}
	printf("%g %d %d\n", c[5], once, first);
	return 0;
}
