// Functions with loops in loops and branches, whose data fits the first cache: their whole
// runtimes are compared.
#define KERNEL(name)                                                                      \
	long name(long n, double *restrict a, double *restrict b, double *restrict c,         \
	          float *restrict f, float *restrict g, int *restrict i, int *restrict j,     \
	          long *restrict p, long *restrict q)

KERNEL(run_matmul) { long m = n >> 5; for (long x = 0; x < m; x++) for (long y = 0; y < m; y++) { double s = 0; for (long z = 0; z < m; z++) s += a[x * m + z] * b[z * m + y]; c[x * m + y] = s; } return 0; }
KERNEL(run_matmul_rows) { long m = n >> 3; for (long x = 0; x < 8; x++) for (long z = 0; z < 8; z++) for (long y = 0; y < m; y++) c[x * m + y] += a[x * m + z] * b[z * m + y]; return 0; }
KERNEL(run_matmul_short) { long m = n >> 5; for (long x = 0; x < m; x++) for (long z = 0; z < m; z++) for (long y = 0; y < m; y++) c[x * m + y] += a[x * m + z] * b[z * m + y]; return 0; }
static void sweep(long rows, long m, double *restrict to, const double *restrict from) { for (long x = 1; x < rows - 1; x++) for (long y = 1; y < m - 1; y++) to[x * m + y] = 0.25 * (from[x * m + y - 1] + from[x * m + y + 1] + from[x * m - m + y] + from[x * m + m + y]); }
KERNEL(run_jacobi) { for (int t = 0; t < 4; t++) { sweep(8, n >> 3, b, a); sweep(8, n >> 3, a, b); } return 0; }
KERNEL(run_jacobi_copied) { for (int t = 0; t < 4; t++) { sweep(8, n >> 3, b, a); for (long k = 0; k < n; k++) a[k] = b[k]; } return 0; }
KERNEL(run_gather) { double s = 0; for (int t = 0; t < 4; t++) for (long k = 0; k < n; k++) s += b[k] * a[i[k]]; return (long)s; }
KERNEL(run_chase) { long s = 0; for (long k = 0; k < 4 * n; k++) s = p[s]; return s; }
KERNEL(run_horner) { double s = 0; for (long k = 0; k < n; k++) { double x = a[k], r = 0; for (int d = 0; d < 12; d++) r = r * x + b[d]; s += r; } return (long)s; }
KERNEL(run_search) { long found = 0; for (long k = 0; k < n; k++) { long low = 0, high = n, want = (k * 7919) & (n - 1); while (low < high) { long middle = (low + high) >> 1; if (q[middle] < want) low = middle + 1; else high = middle; } found += low; } return found; }
KERNEL(run_transpose) { long m = n >> 5; for (int t = 0; t < 4; t++) for (long x = 0; x < m; x++) for (long y = 0; y < m; y++) b[y * m + x] = a[x * m + y]; return 0; }
KERNEL(run_triad) { double x = p[0]; for (int t = 0; t < 4; t++) { for (long k = 0; k < n; k++) c[k] = a[k] + x * b[k]; __asm__ volatile("" ::: "memory"); } return 0; }
KERNEL(run_branches) { long s = 0; for (int t = 0; t < 4; t++) for (long k = 0; k < n; k++) { if ((k & 7) == 3) s ^= p[k] * 31; else s += p[k]; q[k] = s; } return s; }
KERNEL(run_collatz) { long steps = 0; for (long k = 1; k < 40; k++) { unsigned long x = (unsigned long)k; while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; steps++; } } return steps; }
KERNEL(run_histogram) { for (long k = 0; k < n; k++) j[i[k] & 255]++; return 0; }
KERNEL(run_gcd) { long s = 0; for (long k = 1; k < 200; k++) { unsigned x = 832040, y = (unsigned)k * 12345 + 514229; while (y) { unsigned t = x % y; x = y; y = t; } s += x; } return s; }
