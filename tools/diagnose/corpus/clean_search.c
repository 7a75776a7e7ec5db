// clean: binary search in a table that fits in the first level.
#include <stdio.h>
static int table[4096];

int main(void) {
	unsigned seed = 1, found = 0;
	for (int i = 0; i < 4096; i++)
		table[i] = 3 * i;
	for (int n = 0; n < 60000; n++) {
		seed = seed * 1664525u + 1013904223u;
		int key = (seed >> 8) % 12288, lo = 0, hi = 4096;
		while (lo < hi) {
			int mid = (lo + hi) / 2;
			if (table[mid] < key)
				lo = mid + 1;
			else
				hi = mid;
		}
		found += lo < 4096 && table[lo] == key;
	}
	printf("%u\n", found);
}
