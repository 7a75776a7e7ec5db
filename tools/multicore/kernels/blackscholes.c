// Prices of options by the formula of Black and Scholes, each by itself, several times over.
#include <math.h>

#define OPTIONS 2500
#define RUNS 3

static double spot[OPTIONS], strike[OPTIONS], rate[OPTIONS], volatility[OPTIONS], years[OPTIONS], price[OPTIONS];
static char call[OPTIONS];

static double cumulative(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

static double value(double s, double k, double r, double v, double t, int is_call) {
	double root = v * sqrt(t);
	double d1 = (log(s / k) + (r + v * v / 2) * t) / root;
	double d2 = d1 - root;
	double discounted = k * exp(-r * t);
	if (is_call)
		return s * cumulative(d1) - discounted * cumulative(d2);
	return discounted * cumulative(-d2) - s * cumulative(-d1);
}

int main(void) {
	for (int i = 0; i < OPTIONS; i++) {
		spot[i] = 40 + i % 37;
		strike[i] = 45 + i % 23;
		rate[i] = 0.01 + 0.001 * (i % 11);
		volatility[i] = 0.1 + 0.02 * (i % 7);
		years[i] = 0.25 * (1 + i % 8);
		call[i] = i & 1;
	}
	for (int run = 0; run < RUNS; run++) {
#pragma omp parallel for
		for (int i = 0; i < OPTIONS; i++)
			price[i] = value(spot[i], strike[i], rate[i], volatility[i], years[i], call[i]);
	}
	return price[0] < 0;
}
