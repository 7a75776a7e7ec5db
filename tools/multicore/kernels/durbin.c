// Levinson and Durbin's recursion for a Toeplitz system: short parallel loops, of which
// each waits for the one before.
#define N 130

static double r[N], y[N], z[N];

int main(void) {
	for (int i = 0; i < N; i++)
		r[i] = 1.0 / (i + 2);
	y[0] = -r[0];
	double beta = 1, alpha = -r[0];
	for (int k = 1; k < N; k++) {
		beta = (1 - alpha * alpha) * beta;
		double sum = 0;
#pragma omp parallel for reduction(+ : sum)
		for (int i = 0; i < k; i++)
			sum += r[k - i - 1] * y[i];
		alpha = -(r[k] + sum) / beta;
#pragma omp parallel
		{
#pragma omp for
			for (int i = 0; i < k; i++)
				z[i] = y[i] + alpha * y[k - i - 1];
#pragma omp for
			for (int i = 0; i < k; i++)
				y[i] = z[i];
		}
		y[k] = alpha;
	}
	return y[N - 1] > 1;
}
