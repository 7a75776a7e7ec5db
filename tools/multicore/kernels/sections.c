// Sections and a single: three pieces of work that threads take, behind one that a thread
// does for all.
#define N 4000

static double a[N], b[N], c[N];
static double scale;

static void fill(double *x, double by) {
	for (int i = 0; i < N; i++)
		x[i] += by * i;
}

int main(void) {
	for (int t = 0; t < 2; t++) {
#pragma omp parallel
		{
#pragma omp single
			scale = 1.0 / (t + 1);
#pragma omp sections
			{
#pragma omp section
				fill(a, scale);
#pragma omp section
				fill(b, 2 * scale);
#pragma omp section
				fill(c, 3 * scale);
			}
#pragma omp for
			for (int i = 0; i < N; i++)
				a[i] += b[i] * c[i];
		}
	}
	return a[1] < 0;
}
