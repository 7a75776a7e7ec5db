// Convolution in two dimensions, with nine weights.
#define ROWS 96
#define COLUMNS 128

static double in[ROWS][COLUMNS], out[ROWS][COLUMNS];

static void convolve(void) {
#pragma omp parallel for
	for (int i = 1; i < ROWS - 1; i++)
		for (int j = 1; j < COLUMNS - 1; j++)
			out[i][j] = 0.2 * in[i - 1][j - 1] + 0.5 * in[i - 1][j] - 0.8 * in[i - 1][j + 1]
			          - 0.3 * in[i][j - 1] + 0.6 * in[i][j] - 0.9 * in[i][j + 1]
			          + 0.4 * in[i + 1][j - 1] + 0.7 * in[i + 1][j] + 0.1 * in[i + 1][j + 1];
}

int main(void) {
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			in[i][j] = (double)(i * j % 17) / 17;
	convolve();
	return out[1][1] > 100;
}
