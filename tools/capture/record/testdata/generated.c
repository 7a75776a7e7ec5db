// Generates functions while it runs, and names two of the three functions in a perf map, as the
// engines of languages such as JavaScript and Java do. Prints the path of the perf map.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned char load[] = { // returns the int at an address
#ifdef __x86_64__
	0x8b, 0x07, 0xc3
#else
	0x00, 0x00, 0x40, 0xb9, 0xc0, 0x03, 0x5f, 0xd6
#endif
};

enum { distance = 64, functions = 3 };
static int table[1000];

int main(void)
{
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 1;
	for (int f = 0; f < functions; f++)
		memcpy(code + f * distance, load, sizeof load);
	__builtin___clear_cache(code, code + 4096);

	char path[64];
	sprintf(path, "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx 80 replaced\n", (unsigned long)code);
	fprintf(map, "%lx %zx JS:*mul /home/me/a.js:2:14\n", (unsigned long)code, sizeof load);
	fprintf(map, "0x%lx 0x%zx int A.get(int[], int)\n", (unsigned long)(code + distance), sizeof load);
	fclose(map);
	puts(path);

	int sum = 0;
	for (int i = 0; i < 1000; i++)
		for (int f = 0; f < functions; f++)
			sum += ((int (*)(int *))(code + f * distance))(&table[i]);
	return sum;
}
