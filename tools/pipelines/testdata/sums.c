// Chains of sums that may be taken apart: compiled with -ffast-math.
#define KERNEL(name)                                                                      \
	long name(long n, double *restrict a, double *restrict b, double *restrict c,         \
	          float *restrict f, float *restrict g, int *restrict i, int *restrict j,     \
	          long *restrict p, long *restrict q)

KERNEL(fast_dot) { double s = 0; for (long k = 0; k < n; k++) s += a[k] * b[k]; return (long)s; }
KERNEL(fast_dot_float) { float s = 0; for (long k = 0; k < n; k++) s += f[k] * g[k]; return (long)s; }
KERNEL(fast_norm) { double s = 0; for (long k = 0; k < n; k++) s += a[k] * a[k]; return (long)__builtin_sqrt(s); }
KERNEL(fast_sum_float) { double s = 0; for (long k = 0; k < n; k++) s += f[k]; return (long)s; }
