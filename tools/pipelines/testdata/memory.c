// Measures the levels of memory. "memory KIB..." prints, for each footprint, the cycles of a load that
// needs the result of the previous load (chase), and the cycles for each of many lines: lines that are
// read in two streams, copied to other lines, read in random order (scattered), stored to in random
// order (stored), or read in two streams with six more loads per line that hit L1 (busy). Then it
// prints the cycles of loads and stores that access two lines. The memory has the pages that the
// system gives to a program, so the times contain the translation of addresses.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"

enum { LINE = 64, PAGE = 2 << 20, SAMPLES = 9, LEAST = 1 << 18, MOST = 1 << 19 };

static char *room;
static uint32_t *order; // of lines
static long lines;      // of the footprint
static long at;         // where the last sample ended: the next one goes on
static void **node;

static uint64_t seed = 88172645463325252ull;
static long number(long below) {
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (long)(seed % (uint64_t)below);
}

static void arrange(void) {
	for (long k = 0; k < lines; k++) order[k] = (uint32_t)k;
	for (long k = lines - 1; k > 0; k--) {
		long other = number(k + 1);
		uint32_t line = order[k];
		order[k] = order[other], order[other] = line;
	}
	for (long k = 0; k < lines; k++) *(void **)(room + (long)order[k] * LINE) = room + (long)order[(k + 1) % lines] * LINE;
	node = (void **)room, at = 0;
}

static void chase(long n) {
	void **p = node;
	for (long k = 0; k < n; k++) p = *p;
	*(void **volatile *)&node = p;
}

// TOUCH runs an instruction for n lines of the list, from where the last sample ended. Four at a time,
// so that the loop itself takes little of the time.
#define TOUCH(instruction)                                                                      \
	for (long to; n > 0; n -= to, at = (at + to) % lines) {                                    \
		const uint32_t *list = order + at;                                                     \
		to = n < lines - at ? n : lines - at;                                                  \
		for (long k = 0; k + 4 <= to; k += 4)                                                  \
			__asm__ volatile(instruction(0) instruction(1) instruction(2) instruction(3)       \
			                 ::"r"(room + (long)list[k] * LINE), "r"(room + (long)list[k + 1] * LINE), \
			                 "r"(room + (long)list[k + 2] * LINE), "r"(room + (long)list[k + 3] * LINE) \
			                 : "rax", "memory");                                               \
	}
#define LOAD(k) "movq (%" #k "), %%rax\n"
#define STORE(k) "movq %%rax, (%" #k ")\n"
static void scattered(long n) { TOUCH(LOAD) }
static void stored(long n) { TOUCH(STORE) }

// READ reads two streams, as most loops read several: the lower and the upper half. Other instructions
// can be added for every four lines.
#define READ(more)                                                                              \
	long half = lines / 4 * 2 * LINE;                                                           \
	char *from = room, *end = room + half, *p = room + at * LINE;                               \
	for (; n > 0; n -= 4) {                                                                     \
		__asm__ volatile("vmovapd (%0), %%ymm0\nvmovapd 32(%0), %%ymm0\n"                       \
		                 "vmovapd 64(%0), %%ymm0\nvmovapd 96(%0), %%ymm0\n"                     \
		                 "vmovapd (%0,%1), %%ymm0\nvmovapd 32(%0,%1), %%ymm0\n"                 \
		                 "vmovapd 64(%0,%1), %%ymm0\nvmovapd 96(%0,%1), %%ymm0\n" more          \
		                 ::"r"(p), "r"(half), "r"(hot) : "xmm0", "xmm1");                       \
		if ((p += 2 * LINE) >= end) p = from;                                                   \
	}                                                                                           \
	at = (p - from) / LINE;
#define HIT "vmovapd (%2), %%ymm1\n"
#define HITS HIT HIT HIT HIT HIT HIT HIT HIT
static char hot[LINE] __attribute__((aligned(LINE)));
static void read_lines(long n) { READ("") }
static void read_busy(long n) { READ(HITS HITS HITS) } // six loads that hit L1, for each line

// copy takes the lines of the upper half to the lower one, by one line less, so that what is
// written is lower in its page.
static void copy(long n) {
	long half = lines / 2 & ~1l, apart = half * LINE + LINE;
	char *from = room + PAGE / 2, *end = from + half * LINE, *p = from + at * LINE;
	for (; n > 0; n -= 2) {
		__asm__ volatile("vmovapd (%0,%1), %%ymm0\nvmovapd 32(%0,%1), %%ymm1\nvmovapd %%ymm0, (%0)\nvmovapd %%ymm1, 32(%0)\n"
		                 "vmovapd 64(%0,%1), %%ymm2\nvmovapd 96(%0,%1), %%ymm3\nvmovapd %%ymm2, 64(%0)\nvmovapd %%ymm3, 96(%0)"
		                 ::"r"(p), "r"(apart) : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
		if ((p += 2 * LINE) >= end) p = from;
	}
	at = (p - from) / LINE;
}

// Every second load or store of 32 bytes lies across two lines.
static void loads(long n) {
	for (char *from = room; n > 0; n--)
		__asm__ volatile("vmovupd 16(%0), %%ymm0\nvmovupd 48(%0), %%ymm1" ::"r"(from + n % 256 * LINE) : "xmm0", "xmm1");
}
static void stores(long n) {
	for (char *from = room; n > 0; n--)
		__asm__ volatile("vmovupd %%ymm0, 16(%0)\nvmovupd %%ymm0, 48(%0)" ::"r"(from + n % 256 * LINE) : "memory");
}

// clock_of_all is the fastest chain so far: what slows one down is no part of the clock.
static unsigned long clock_of_all = ~0ul;

static double fastest(void (*run)(long), long n) {
	unsigned long best = ~0ul;
	at = 0;
	run(n);
	for (int s = 0; s < SAMPLES; s++) {
		unsigned long again = chain(), from = now();
		run(n);
		unsigned long took = now() - from;
		clock_of_all = again < clock_of_all ? again : clock_of_all;
		best = took < best ? took : best;
	}
	return (double)best / (double)n / cycle(clock_of_all, clock_of_all);
}

int main(int argc, char **argv) {
	long most = 0;
	for (int k = 1; k < argc; k++)
		if (atol(argv[k]) * 1024 > most) most = atol(argv[k]) * 1024;
	most += 2 * PAGE;
	room = mmap(NULL, (size_t)most + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	room = (char *)(((uintptr_t)room + PAGE - 1) / PAGE * PAGE);
	memset(room, 1, (size_t)most);
	order = malloc((size_t)most / LINE * sizeof *order);
	for (int k = 1; k < argc; k++) {
		lines = atol(argv[k]) * 1024 / LINE;
		long n = lines > MOST ? MOST : (LEAST + lines - 1) / lines * lines;
		arrange();
		printf("level %s %.2f", argv[k], fastest(chase, n));
		printf(" %.3f", fastest(read_lines, n));
		printf(" %.3f", fastest(copy, n));
		printf(" %.3f", fastest(scattered, n));
		printf(" %.3f", fastest(stored, n));
		printf(" %.3f\n", fastest(read_busy, n));
		fflush(stdout);
	}
	// Two words that point at each other, in one line and across lines.
	for (int off = 0; off < 64; off += 60) {
		char *one = room + 1024 + off, *other = one + 4 * LINE;
		memcpy(one, &other, sizeof other), memcpy(other, &one, sizeof one);
		node = (void **)one;
		printf("chain %d %.2f\n", off, fastest(chase, LEAST));
	}
	printf("loads %.3f\n", fastest(loads, LEAST));
	printf("stores %.3f\n", fastest(stores, LEAST));
}
