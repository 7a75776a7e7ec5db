// Counts what clang's coverage of a program calls: loads and stores by their bytes,
// and blocks. Says so at the end, on descriptor 3.
#include <stdint.h>
#include <stdio.h>

static uint64_t loads[5], stores[5], blocks;

#define COUNT(bytes, log)                                                              \
	void __sanitizer_cov_load##bytes(void *p) { (void)p, loads[log]++; }           \
	void __sanitizer_cov_store##bytes(void *p) { (void)p, stores[log]++; }
COUNT(1, 0)
COUNT(2, 1)
COUNT(4, 2)
COUNT(8, 3)
COUNT(16, 4)

void __sanitizer_cov_trace_pc_guard(uint32_t *guard) { (void)guard, blocks++; }
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) { (void)start, (void)stop; }

static __attribute__((destructor(101))) void tell(void)
{
	for (int i = 0; i < 5; i++)
		dprintf(3, "load %d %lu\nstore %d %lu\n", 1 << i, (unsigned long)loads[i], 1 << i, (unsigned long)stores[i]);
	dprintf(3, "blocks %lu\n", (unsigned long)blocks);
}
