// Loops that the compiler vectorises, and may unroll.
#define KERNEL(name)                                                                      \
	long name(long n, double *restrict a, double *restrict b, double *restrict c,         \
	          float *restrict f, float *restrict g, int *restrict i, int *restrict j,     \
	          long *restrict p, long *restrict q)

KERNEL(wide_copy_scaled) { double x = c[0]; for (long k = 0; k < n; k++) b[k] = x * a[k]; return 0; }
KERNEL(wide_triad) { double x = p[0]; for (long k = 0; k < n; k++) c[k] = a[k] + x * b[k]; return 0; }
KERNEL(wide_saxpy) { float x = (float)p[0]; for (long k = 0; k < n; k++) g[k] += x * f[k]; return 0; }
KERNEL(wide_stencil3) { double x = c[0]; for (long k = 1; k < n - 1; k++) b[k] = x * (a[k - 1] + a[k] + a[k + 1]); return 0; }
KERNEL(wide_sum_int) { int s = 0; for (long k = 0; k < n; k++) s += i[k]; return s; }
KERNEL(wide_sum_widened) { long s = 0; for (long k = 0; k < n; k++) s += i[k]; return s; }
KERNEL(wide_largest_int) { int s = i[0]; for (long k = 0; k < n; k++) s = i[k] > s ? i[k] : s; return s; }
KERNEL(wide_divide) { for (long k = 0; k < n; k++) c[k] = a[k] / b[k]; return 0; }
KERNEL(wide_root) { for (long k = 0; k < n; k++) b[k] = __builtin_sqrt(a[k]); return 0; }
KERNEL(wide_root_float) { for (long k = 0; k < n; k++) g[k] = __builtin_sqrtf(f[k]); return 0; }
KERNEL(wide_select) { for (long k = 0; k < n; k++) b[k] = a[k] > 0.5 ? a[k] : 1 - a[k]; return 0; }
KERNEL(wide_clamp_int) { for (long k = 0; k < n; k++) j[k] = i[k] < 0 ? 0 : i[k] > 255 ? 255 : i[k]; return 0; }
KERNEL(wide_int_to_float) { for (long k = 0; k < n; k++) f[k] = (float)i[k]; return 0; }
KERNEL(wide_int_to_double) { for (long k = 0; k < n; k++) a[k] = i[k]; return 0; }
KERNEL(wide_hash) { for (long k = 0; k < n; k++) { unsigned x = (unsigned)i[k]; x ^= x >> 16; x *= 0x45d9f3bu; x ^= x >> 16; j[k] = (int)x; } return 0; }
KERNEL(wide_polynomial) { for (long k = 0; k < n; k++) { double x = a[k]; b[k] = (((0.3 * x + 0.7) * x + 1.1) * x + 0.2) * x + 0.9; } return 0; }
KERNEL(wide_norm) { for (long k = 0; k < n; k++) c[k] = __builtin_sqrt(a[k] * a[k] + b[k] * b[k]); return 0; }
KERNEL(wide_count) { long s = 0; for (long k = 0; k < n; k++) s += p[k] > 7; return s; }
KERNEL(unrolled_sum) { double s = 0; for (long k = 0; k < n; k++) s += a[k]; return (long)s; }
KERNEL(unrolled_prefix) { double s = 0; for (long k = 0; k < n; k++) { s += a[k]; b[k] = s; } return 0; }
KERNEL(unrolled_chase) { long s = 0; for (long k = 0; k < n; k++) s = p[s]; return s; }
