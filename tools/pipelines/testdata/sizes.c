// Eight kernels, as people write them.
#include "sizes.h"

static char *at; // where the next array lies, and how far down in its page
static long down;

// array gives room for bytes that begins 16 bytes behind a line, as malloc gives it, and lower
// in its page than the array before it: what is written comes last, for loads wait for
// stores before them to other pages that end in the same digits.
static void *array(long bytes) {
	char *begin = at + down;
	at += (bytes + down + 4095) / 4096 * 4096, down -= 704;
	return begin;
}

static unsigned long seed;
static unsigned long number(unsigned long below) {
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed % below;
}
static void begin(void) { at = room, down = 3536, seed = 88172645463325252ul; }

static double *numbers(long n) {
	double *list = array(n * 8);
	for (long k = 0; k < n; k++) list[k] = 1 + (double)(k % 1000) / 1000;
	return list;
}

static double *a, *b, *c, x;
static int *first, *column;
static long *list, *wanted, found;
struct node {
	struct node *next;
	long rest[7];
};
static struct node *nodes;

// A kernel is two functions, of which one runs first, so that the other finds in the caches
// what a run leaves there.
#define KERNEL(name)                                                                          \
	static inline __attribute__((always_inline)) void name(long n);                          \
	void warm_##name(long n) { name(n); }                                                     \
	void run_##name(long n) { name(n); }                                                      \
	static inline __attribute__((always_inline)) void name(long n)

// C = A·B of n×n, by rows and columns.
void prepare_matmul(long n) { begin(), a = numbers(n * n), b = numbers(n * n), c = numbers(n * n); }
KERNEL(matmul) {
	double *restrict to = c;
	const double *restrict left = a, *restrict right = b;
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			double sum = 0;
			for (long k = 0; k < n; k++) sum += left[i * n + k] * right[k * n + j];
			to[i * n + j] = sum;
		}
}

// A sweep over n×n: each the mean of its four neighbours.
void prepare_jacobi(long n) { begin(), a = numbers(n * n), b = numbers(n * n); }
KERNEL(jacobi) {
	double *restrict to = b;
	const double *restrict from = a;
	for (long i = 1; i < n - 1; i++)
		for (long j = 1; j < n - 1; j++)
			to[i * n + j] = 0.25 * (from[i * n + j - 1] + from[i * n + j + 1] + from[i * n - n + j] + from[i * n + n + j]);
}

// y = A·x of a sparse matrix with n rows of 8 numbers, in n columns at random.
void prepare_gather(long n) {
	begin();
	first = array((n + 1) * 4), column = array(8 * n * 4);
	a = numbers(8 * n), b = numbers(n), c = numbers(n);
	for (long i = 0; i <= n; i++) first[i] = (int)(8 * i);
	for (long k = 0; k < 8 * n; k++) column[k] = (int)number((unsigned long)n);
}
KERNEL(gather) {
	double *restrict to = c;
	const double *restrict of = a, *restrict from = b;
	const int *restrict in = column;
	for (long i = 0; i < n; i++) {
		double sum = 0;
		for (int k = first[i]; k < first[i + 1]; k++) sum += of[k] * from[in[k]];
		to[i] = sum;
	}
}

// Once around n nodes of a line each, linked at random (Sattolo's algorithm).
void prepare_chase(long n) {
	begin();
	nodes = array(n * (long)sizeof *nodes);
	for (long k = 0; k < n; k++) nodes[k].next = &nodes[k];
	for (long k = n - 1; k > 0; k--) {
		unsigned long other = number((unsigned long)k);
		struct node *next = nodes[k].next;
		nodes[k].next = nodes[other].next, nodes[other].next = next;
	}
}
KERNEL(chase) {
	struct node *node = nodes;
	for (long k = 0; k < n; k++) node = node->next;
	nodes = node;
}

// A polynomial of degree 12 of n numbers, which are added up.
void prepare_horner(long n) { begin(), a = numbers(n), b = numbers(13); }
KERNEL(horner) {
	double sum = 0;
	for (long k = 0; k < n; k++) {
		double value = 0;
		for (int d = 0; d < 13; d++) value = value * a[k] + b[d];
		sum += value;
	}
	x = sum;
}

// 4,000 numbers looked up in a sorted list of n.
enum { WANTED = 4000 };
void prepare_search(long n) {
	begin();
	wanted = array(WANTED * 8), list = array(n * 8);
	for (long k = 0; k < n; k++) list[k] = 3 * k;
	for (long k = 0; k < WANTED; k++) wanted[k] = (long)number(3 * (unsigned long)n);
}
KERNEL(search) {
	for (long k = 0; k < WANTED; k++) {
		long low = 0, high = n;
		while (low < high) {
			long middle = low + (high - low) / 2;
			if (list[middle] < wanted[k]) low = middle + 1;
			else high = middle;
		}
		found += low;
	}
}

// B = Aᵀ of n×n.
void prepare_transpose(long n) { begin(), a = numbers(n * n), b = numbers(n * n); }
KERNEL(transpose) {
	double *restrict to = b;
	const double *restrict from = a;
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) to[j * n + i] = from[i * n + j];
}

// a = b + x·c of n numbers.
void prepare_triad(long n) { begin(), b = numbers(n), c = numbers(n), a = numbers(n), x = 3; }
KERNEL(triad) {
	double *restrict to = a;
	const double *restrict left = b, *restrict right = c;
	double by = x;
	for (long k = 0; k < n; k++) to[k] = left[k] + by * right[k];
}
