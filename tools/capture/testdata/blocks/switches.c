// Switches: dense, sparse, of several cases to one place, that fall through.
#include <stdio.h>

__attribute__((noinline)) static int dense(int n)
{
	switch (n % 8) {
	case 0: return 3;
	case 1:
	case 2: n += 5;
	case 3: n ^= 9; break;
	case 5: return dense(n / 2);
	case 6: n -= 2; break;
	}
	return n;
}

__attribute__((noinline)) static const char *sparse(unsigned n)
{
	switch (n) {
	case 7: case 1000: case 12: return "some";
	case 100000: return "many";
	case 1u << 31: return "all";
	default: return n > 50 ? "more" : "less";
	}
}

int main(void)
{
	long sum = 0;
	for (int i = 0; i < 500; i++)
		sum += dense(i) + sparse(i * i)[0];
	printf("%ld %s %s\n", sum, sparse(100000), sparse(1u << 31));
	return 0;
}
