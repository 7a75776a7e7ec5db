// irregular: a hash join of two tables, with chains
#include <stdio.h>
#include <stdlib.h>

#define ROWS 500000
#define BUCKETS (1 << 18)

struct row { unsigned key, value; int next; };

static struct row left[ROWS], right[ROWS];
static int first[BUCKETS];

static unsigned state = 7;
static unsigned any(void) { return state = state * 1664525u + 1013904223u; }

int main(void) {
	for (int i = 0; i < BUCKETS; i++)
		first[i] = -1;
	for (int i = 0; i < ROWS; i++) {
		left[i].key = (any() >> 8) % ROWS;
		left[i].value = i;
		unsigned bucket = left[i].key * 2654435761u % BUCKETS;
		left[i].next = first[bucket];
		first[bucket] = i;
		right[i].key = (any() >> 8) % ROWS;
	}
	unsigned long sum = 0;
	for (int i = 0; i < ROWS; i++)
		for (int j = first[right[i].key * 2654435761u % BUCKETS]; j >= 0; j = left[j].next)
			if (left[j].key == right[i].key)
				sum += left[j].value;
	printf("%lu\n", sum);
}
