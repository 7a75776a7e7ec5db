// clean: records of different lengths, one after the other. Each record contains the offset of the next
// record, but a prefetcher hides the latency of the fetches.
#include <stdio.h>
#include <stdlib.h>
struct record {
	unsigned next, value;
	char text[];
};
int main(void) {
	unsigned bytes = 16u << 20, at = 0, x = 1, sum = 0;
	char *data = malloc(bytes);
	while (at < bytes - 512) {
		x = x * 1664525u + 1013904223u;
		struct record *r = (struct record *)(data + at);
		r->value = x;
		r->next = at += 72 + (x >> 16) % 48 / 8 * 8;
	}
	unsigned end = at;
	for (at = 0; at < end;) {
		struct record *r = (struct record *)(data + at);
		sum += r->value;
		at = r->next;
	}
	printf("%u\n", sum);
}
