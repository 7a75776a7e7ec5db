// Most of what C does with memory and control, in one deterministic program.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n = 12 };
static double a[n][n], b[n][n], c[n][n];
_Thread_local int per_thread = 3;
static const int primes[] = { 2, 3, 5, 7, 11 };

struct packed {
	unsigned flag : 3, middle : 19, rest : 10;
	char tail[7];
	long double wide;
	struct { short x, y, z; } inner[3];
} __attribute__((packed));

__attribute__((noinline)) void multiply(void)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			for (int k = 0; k < n; k++)
				c[i][j] += a[i][k] * b[k][j];
}

__attribute__((noinline)) static int sum_of(int count, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, count);
	while (count--)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

static int compare(const void *x, const void *y) { return *(const int *)x - *(const int *)y; }

static jmp_buf back;
__attribute__((noinline)) static void leap(int depth)
{
	volatile char room[40];
	room[depth % 40] = 1;
	if (depth == 0)
		longjmp(back, 7);
	leap(depth - 1);
	room[0]++;
}

__attribute__((noinline)) static int interpret(const unsigned char *code)
{
	static void *const labels[] = { &&stop, &&more, &&twice, &&less };
	int value = 0;
	goto *labels[*code++];
more:
	value++;
	goto *labels[*code++];
twice:
	value *= 2;
	goto *labels[*code++];
less:
	value -= 3;
	goto *labels[*code++];
stop:
	return value;
}

__attribute__((noinline)) static unsigned choose(unsigned x)
{
	switch (x % 11) {
	case 0: return x / 3;
	case 1: return x << 2;
	case 2: case 3: return x ^ 0x55;
	case 4: return choose(x - 1) + 1;
	case 5: return (unsigned)primes[x % 5];
	case 6: abort();
	default: return x;
	}
}

__attribute__((noinline)) static long variable_array(int length)
{
	long list[length], sum = 0;
	for (int i = 0; i < length; i++)
		list[i] = i * i;
	for (int i = 0; i < length; i++)
		sum += list[length - 1 - i];
	return sum;
}

__attribute__((noinline)) static uint32_t atomics(void)
{
	static uint32_t shared;
	static uint64_t wide;
	for (int i = 0; i < 20; i++) {
		__atomic_fetch_add(&shared, 3, __ATOMIC_SEQ_CST);
		__atomic_store_n(&wide, __atomic_load_n(&wide, __ATOMIC_ACQUIRE) + i, __ATOMIC_RELEASE);
		uint32_t expected = shared;
		__atomic_compare_exchange_n(&shared, &expected, expected ^ 5, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return shared + (uint32_t)wide;
}

__attribute__((noinline)) static long memory(size_t length)
{
	char *p = malloc(length), *q = calloc(length, 2);
	void *aligned = NULL;
	memset(p, 7, length);
	memcpy(q + length, p, length);
	memmove(q + 1, q + length / 2, length);
	p = realloc(p, 3 * length);
	if (posix_memalign(&aligned, 64, 256))
		abort();
	memset(aligned, 1, 256);
	long sum = 0;
	for (size_t i = 0; i < length; i++)
		sum += q[i] + p[i] + ((char *)aligned)[i % 256];
	free(p);
	free(q);
	free(aligned);
	free(NULL);
	return sum;
}

typedef float four __attribute__((vector_size(16)));
__attribute__((noinline)) static four vectors(const four *x, int count)
{
	four sum = { 0 };
	for (int i = 0; i < count; i++)
		sum += x[i] * x[i];
	return sum;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			a[i][j] = i + j, b[i][j] = i - j;
	multiply();
	double trace = 0;
	for (int i = 0; i < n; i++)
		trace += c[i][i];
	printf("trace %g\n", trace);

	struct packed s = { 5, 1000, 3, "tail", 2.5L, { { 1, 2, 3 } } }, copy = s;
	copy.middle += 17;
	copy.wide *= 3;
	copy.inner[2] = copy.inner[0];
	printf("packed %u %Lg %d %s\n", copy.middle, copy.wide, copy.inner[2].z, copy.tail);

	int list[50];
	for (int i = 0; i < 50; i++)
		list[i] = i * 37 % 101;
	qsort(list, 50, sizeof *list, compare);
	printf("sorted %d %d %d\n", list[0], list[25], list[49]);

	volatile int arrived = 0;
	int code = setjmp(back);
	if (code == 0)
		leap(20);
	else
		arrived = code;
	printf("leapt %d, sum %d\n", arrived, sum_of(4, 1, 2, 3, argc));
	printf("interpreted %d\n", interpret((const unsigned char *)"\1\1\2\1\2\3\0"));
	unsigned chosen = 0;
	for (unsigned i = 0; i < 100; i++)
		if (i % 11 != 6)
			chosen += choose(i);
	printf("chosen %u\n", chosen);
	printf("array %ld, atomics %u, memory %ld\n", variable_array(30 + argc), atomics(), memory(100));
	four x[9];
	for (int i = 0; i < 9; i++)
		x[i] = (four){ i, 1, 2, -i };
	four y = vectors(x, 9);
	printf("vectors %g %g\n", y[0], y[3]);
	per_thread += argc;
	__asm__ volatile("" : : "r"(&per_thread) : "memory");
	return argv[0] == NULL ? 1 : per_thread;
}
