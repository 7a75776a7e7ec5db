// Loops and conditions of every form.
#include <stdio.h>

static int classify(int n)
{
	if (n % 15 == 0)
		return 15;
	return n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : n & 1 && n % 7 != 2 || n > 190 ? 1 : 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	int counts[16] = {0}, n = 0;
	long sum = 0;
	for (int i = 0; i < 200; i++) {
		counts[classify(i)]++;
		for (int j = i; j > 0; j -= 1 + j / 3) {
			if (j == 50)
				continue;
			if (j * i == 4200)
				break;
			sum += j;
		}
	}
	do {
		n += argc;
		while (n % 10)
			n++;
	} while (n < 300);
	printf("%ld %d %d %d %d %d\n", sum, n, counts[15], counts[3], counts[5], counts[1]);
	return 0;
}
