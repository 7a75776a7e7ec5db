// Loops that work on one element a time: compiled without vectors and without
// unrolling, so that each is one block. All take the same arguments, the arrays of
// n elements that no two of them share.
#define KERNEL(name)                                                                      \
	long name(long n, double *restrict a, double *restrict b, double *restrict c,         \
	          float *restrict f, float *restrict g, int *restrict i, int *restrict j,     \
	          long *restrict p, long *restrict q)
typedef unsigned int u32;
typedef unsigned long u64;

// ---- reductions and recurrences of floating point

KERNEL(sum_double) { double s = 0; for (long k = 0; k < n; k++) s += a[k]; return (long)s; }
KERNEL(sum_float) { float s = 0; for (long k = 0; k < n; k++) s += f[k]; return (long)s; }
KERNEL(dot_double) { double s = 0; for (long k = 0; k < n; k++) s += a[k] * b[k]; return (long)s; }
KERNEL(product) { double s = 1; for (long k = 0; k < n; k++) s *= a[k]; return (long)s; }
KERNEL(horner) { double s = 0, x = b[0]; for (long k = 0; k < n; k++) s = s * x + a[k]; return (long)s; }
KERNEL(first_order) { double s = 0, x = b[0]; for (long k = 0; k < n; k++) { s = a[k] - x * s; c[k] = s; } return 0; }
KERNEL(prefix_double) { double s = 0; for (long k = 0; k < n; k++) { s += a[k]; b[k] = s; } return 0; }
KERNEL(two_sums) { double s = 0, t = 0; for (long k = 0; k < n; k++) { s += a[k]; t += a[k] * a[k]; } return (long)(s + t); }
KERNEL(four_sums) { double s = 0, t = 0, u = 0, v = 0; for (long k = 0; k < n; k += 4) { s += a[k]; t += a[k + 1]; u += a[k + 2]; v += a[k + 3]; } return (long)(s + t + u + v); }
KERNEL(complex_power) { double x = a[0], y = b[0], r = 1, s = 0; for (long k = 0; k < n; k++) { double t = r * x - s * y; s = r * y + s * x; r = t; } return (long)(r + s); }
KERNEL(largest_double) { double s = a[0]; for (long k = 0; k < n; k++) s = a[k] > s ? a[k] : s; return (long)s; }
KERNEL(absolute_sum) { double s = 0; for (long k = 0; k < n; k++) s += __builtin_fabs(a[k]); return (long)s; }

// ---- division and square root

KERNEL(divide_double) { for (long k = 0; k < n; k++) c[k] = a[k] / b[k]; return 0; }
KERNEL(divide_float) { for (long k = 0; k < n; k++) g[k] = 3 / f[k]; return 0; }
KERNEL(continued_fraction) { double s = 1; for (long k = 0; k < n; k++) s = a[k] + 1 / s; return (long)s; }
KERNEL(root_double) { for (long k = 0; k < n; k++) b[k] = __builtin_sqrt(a[k]); return 0; }
KERNEL(root_float) { for (long k = 0; k < n; k++) g[k] = __builtin_sqrtf(f[k]); return 0; }
KERNEL(root_chain) { double s = 2; for (long k = 0; k < n; k++) s = __builtin_sqrt(s + a[k]); return (long)s; }
KERNEL(norm) { for (long k = 0; k < n; k++) c[k] = a[k] / __builtin_sqrt(a[k] * a[k] + b[k] * b[k]); return 0; }
KERNEL(divide_int) { int d = 7 + (int)n; for (long k = 0; k < n; k++) j[k] = i[k] / d; return 0; }
KERNEL(divide_long) { long d = 7 + n; for (long k = 0; k < n; k++) q[k] = p[k] / d; return 0; }
KERNEL(modulo_chain) { u32 s = 12345, d = 1000003 + (u32)n; for (long k = 0; k < n; k++) s = (s * 16807 + (u32)k) % d; return (long)s; }
KERNEL(divide_constant) { for (long k = 0; k < n; k++) j[k] = (int)((u32)i[k] / 10); return 0; }

// ---- stencils and updates

KERNEL(copy_double) { for (long k = 0; k < n; k++) { b[k] = a[k]; __asm__ volatile("" ::: ); } return 0; }
KERNEL(scale) { double x = c[0]; for (long k = 0; k < n; k++) b[k] = x * a[k]; return 0; }
KERNEL(daxpy) { double x = c[0]; for (long k = 0; k < n; k++) b[k] += x * a[k]; return 0; }
KERNEL(stencil3) { double x = c[0]; for (long k = 1; k < n - 1; k++) b[k] = x * (a[k - 1] + a[k] + a[k + 1]); return 0; }
KERNEL(gauss_seidel) { for (long k = 1; k < n - 1; k++) a[k] = 0.5 * (a[k - 1] + a[k + 1]); return 0; }
KERNEL(polynomial) { for (long k = 0; k < n; k++) { double x = a[k]; b[k] = (((0.3 * x + 0.7) * x + 1.1) * x + 0.2) * x + 0.9; } return 0; }
KERNEL(gather_sum) { double s = 0; for (long k = 0; k < n; k++) s += a[i[k]]; return (long)s; }
KERNEL(sparse_row) { double s = 0; for (long k = 0; k < n; k++) s += b[k] * a[i[k]]; return (long)s; }

// ---- conversions

KERNEL(int_to_double) { for (long k = 0; k < n; k++) a[k] = i[k]; return 0; }
KERNEL(long_to_double) { for (long k = 0; k < n; k++) a[k] = (double)p[k]; return 0; }
KERNEL(double_to_int) { for (long k = 0; k < n; k++) j[k] = (int)a[k]; return 0; }
KERNEL(float_to_double) { double s = 0; for (long k = 0; k < n; k++) s += f[k]; return (long)s; }
KERNEL(widen_sum) { long s = 0; for (long k = 0; k < n; k++) s += i[k]; return s; }

// ---- integers

KERNEL(sum_long) { long s = 0; for (long k = 0; k < n; k++) s += p[k]; return s; }
KERNEL(prefix_long) { long s = 0; for (long k = 0; k < n; k++) { s += p[k]; q[k] = s; } return 0; }
KERNEL(fnv_hash) { u64 s = 1469598103934665603u; for (long k = 0; k < n; k++) s = (s ^ (u64)p[k]) * 1099511628211u; return (long)s; }
KERNEL(xorshift) { u64 s = 88172645463325252u; for (long k = 0; k < n; k++) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; } return (long)s; }
KERNEL(rotate_mix) { u64 s = 1; for (long k = 0; k < n; k++) s = ((s << 23) | (s >> 41)) * 0x9E3779B97F4A7C15u + (u64)p[k]; return (long)s; }
KERNEL(finalizer) { for (long k = 0; k < n; k++) { u64 x = (u64)p[k]; x ^= x >> 33; x *= 0xff51afd7ed558ccdu; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53u; x ^= x >> 33; q[k] = (long)x; } return 0; }
KERNEL(congruential) { u64 s = (u64)n; for (long k = 0; k < n; k++) { s = s * 6364136223846793005u + 1442695040888963407u; q[k] = (long)s; } return 0; }
KERNEL(shift_by) { for (long k = 0; k < n; k++) q[k] = p[k] << (i[k] & 31); return 0; }
KERNEL(select_int) { int t = (int)n; for (long k = 0; k < n; k++) j[k] = i[k] < t ? i[k] : -i[k] + 3; return 0; }
KERNEL(largest_long) { long s = p[0]; for (long k = 0; k < n; k++) s = p[k] > s ? p[k] : s; return s; }
KERNEL(count_above) { long s = 0, t = p[0]; for (long k = 0; k < n; k++) s += p[k] > t; return s; }
KERNEL(ones) { long s = 0; for (long k = 0; k < n; k++) s += __builtin_popcountl((u64)p[k]); return s; }
KERNEL(leading) { long s = 0; for (long k = 0; k < n; k++) s += __builtin_clzl((u64)p[k] | 1); return s; }
KERNEL(chase) { long s = 0; for (long k = 0; k < n; k++) s = p[s]; return s; }
KERNEL(chase_and_sum) { long s = 0, t = 0; for (long k = 0; k < n; k++) { t += q[s]; s = p[s]; } return t; }
KERNEL(fibonacci) { u64 s = 0, t = 1; for (long k = 0; k < n; k++) { u64 u = s + t; s = t; t = u ^ (u64)k; } return (long)s; }
