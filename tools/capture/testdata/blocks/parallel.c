// OpenMP: regions, loops that are shared out in a fixed way, sections of one thread,
// tasks that are made and waited for, regions in regions.
#include <omp.h>
#include <stdio.h>

#define N 500
static double a[N], b[N];

static int twice(int n) { return n % 3 ? n * 2 : n; }

int main(void)
{
	omp_set_dynamic(0);
	omp_set_max_active_levels(2);
	double sum = 0;
	int singles = 0, marks = 0;
#pragma omp parallel for schedule(static)
	for (int i = 0; i < N; i++)
		a[i] = twice(i) * 0.5;
#pragma omp parallel
	{
#pragma omp for schedule(static, 7)
		for (int i = 1; i < N - 1; i++)
			b[i] = a[i] > 100 ? a[i - 1] + a[i + 1] : a[i];
#pragma omp critical
		marks += omp_get_thread_num() + 1;
#pragma omp barrier
#pragma omp master
		singles++;
#pragma omp parallel num_threads(2)
		{
#pragma omp atomic
			singles++;
		}
	}
	for (int i = 0; i < N; i++)
		sum += b[i];
	printf("%g %d %d\n", sum, singles, marks);
	return 0;
}
