// clean: words counted in a table that fits in the second level.
#include <cstdio>
#include <cstdint>
static uint16_t count[512];

int main() {
	uint32_t seed = 7;
	for (int i = 0; i < 400000; i++) {
		seed = seed * 1664525u + 1013904223u;
		count[seed >> 23]++;
	}
	std::printf("%u\n", count[9]);
}
