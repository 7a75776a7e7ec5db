// A sparse matrix times a vector: rows of different lengths, given out as threads come.
#define ROWS 1500
#define MOST 24
#define RUNS 2

static int begin[ROWS + 1], column[ROWS * MOST];
static double value[ROWS * MOST], x[ROWS], y[ROWS];

int main(void) {
	unsigned state = 4711;
	for (int i = 0; i < ROWS; i++) {
		state = state * 1664525u + 1013904223u;
		int n = 1 + (int)((state >> 16) % MOST);
		begin[i + 1] = begin[i] + n;
		for (int e = begin[i]; e < begin[i + 1]; e++) {
			state = state * 1664525u + 1013904223u;
			column[e] = (int)((state >> 8) % ROWS);
			value[e] = 1.0 / (1 + e % 13);
		}
		x[i] = i % 5;
	}
	for (int run = 0; run < RUNS; run++) {
#pragma omp parallel for schedule(dynamic, 8)
		for (int i = 0; i < ROWS; i++) {
			double sum = 0;
			for (int e = begin[i]; e < begin[i + 1]; e++)
				sum += value[e] * x[column[e]];
			y[i] = sum;
		}
	}
	return y[0] < 0;
}
