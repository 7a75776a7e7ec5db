// The headers of many blocks, one in each page, are looked through again and again.
#include <stdio.h>
#include <stdlib.h>
#define BLOCKS 6000
#ifdef FIXED
#define PITCH 4
#else
#define PITCH (4096 + 64)
#endif

int main(void) {
	char *store = aligned_alloc(4096, (size_t)BLOCKS * (4096 + 64) & ~(size_t)4095);
	long live = 0;
	for (long b = 0; b < BLOCKS; b++)
		*(int *)(store + b * PITCH) = b % 3;
	for (int scan = 0; scan < 40; scan++)
		for (long b = 0; b < BLOCKS; b++)
			live += *(int *)(store + b * PITCH); // planted: tlb
	printf("%ld\n", live);
}
