// Jacobi iterations of threads that load the rows at the border of their neighbours.
#include <omp.h>
#include <cstdio>
#include <vector>

int main() {
	const int n = 128;
	double *a = new double[n * n], *b = new double[n * n];
	#pragma omp parallel num_threads(4)
	{
		#pragma omp for schedule(static)
		for (int i = 0; i < n * n; i++)
			a[i] = b[i] = i % 9;
		for (int t = 0; t < 20; t++) {
			double *from = t % 2 ? b : a, *to = t % 2 ? a : b;
			#pragma omp for schedule(static)
			for (int y = 1; y < n - 1; y++)
				for (int x = 1; x < n - 1; x++)
					to[y * n + x] = 0.25 * (from[(y - 1) * n + x] + from[(y + 1) * n + x] + from[y * n + x - 1] + from[y * n + x + 1]);
		}
	}
	std::printf("%g\n", a[200]);
}
