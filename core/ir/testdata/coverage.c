// What clang's -fsanitize-coverage=trace-loads,trace-stores calls: counts of
// loads and stores by size, from another instrumentation than ours.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FOR_SIZES(one) one(1) one(2) one(4) one(8) one(16)
#define COUNTERS(n) static uint64_t loads##n, stores##n; \
	void __sanitizer_cov_load##n(void *at) { (void)at; __atomic_fetch_add(&loads##n, 1, __ATOMIC_RELAXED); } \
	void __sanitizer_cov_store##n(void *at) { (void)at; __atomic_fetch_add(&stores##n, 1, __ATOMIC_RELAXED); }
FOR_SIZES(COUNTERS)

static void report(void)
{
	FILE *out = fopen(getenv("STUB_OUT"), "w");
	if (!out)
		return;
#define REPORT(n) fprintf(out, "%d %llu %llu\n", n, (unsigned long long)loads##n, (unsigned long long)stores##n);
	FOR_SIZES(REPORT)
	fclose(out);
}

__attribute__((constructor(101))) static void begin(void) { atexit(report); }
