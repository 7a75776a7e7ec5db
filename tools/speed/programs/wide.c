// memory: references to random lines out of 128 MB
#include <stdio.h>

#define LINES (1 << 21)

static struct { long n[8]; } a[LINES];

int main(void) {
	unsigned x = 1;
	long sum = 0;
	for (int i = 0; i < 4000000; i++) {
		x = x * 1664525 + 1013904223;
		sum += a[x >> 11].n[0]++;
	}
	printf("%ld\n", sum);
}
