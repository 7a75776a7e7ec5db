// A vector's elements one by one to threads in turn: all write into the same lines.
#define N 6000
#define RUNS 3

static double x[N], y[N];

int main(void) {
	for (int i = 0; i < N; i++)
		x[i] = i % 9;
	for (int run = 0; run < RUNS; run++) {
#pragma omp parallel for schedule(static, 1)
		for (int i = 0; i < N; i++)
			y[i] = y[i] * 0.5 + x[i];
	}
	return y[0] < 0;
}
