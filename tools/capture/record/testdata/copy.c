// Maps its own code a second time, as V8 does with its built-in functions, and calls both.
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static int table[1000];

__attribute__((noinline)) long total(const volatile int *at, int n)
{
	long s = 0;
	for (int i = 0; i < n; i++)
		s += at[i];
	return s;
}

int main(void)
{
	const ElfW(Phdr) *p = (const void *)getauxval(AT_PHDR);
	const char *base = (const char *)p - p->p_vaddr; // the first header describes the headers
	while (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
		p++;
	const char *code = base + p->p_vaddr;
	int fd = open("/proc/self/exe", O_RDONLY);
	char *copy = mmap(0, p->p_memsz, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)p->p_offset);
	if (copy == MAP_FAILED)
		return 1;
	long (*again)(const volatile int *, int) = (void *)(copy + ((const char *)total - code));
	return total(table, 1000) + again(table, 1000) == 0 ? 3 : 1;
}
