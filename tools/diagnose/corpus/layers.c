/* A volume whose last index is in the outermost loop; without optimisation, counters and sums are in memory. */
// options: -O0
#include <stdio.h>
static int volume[50][60][80];

int main(void) {
	long sum = 0;
	for (int i = 0; i < 50; i++)
		for (int j = 0; j < 60; j++)
			for (int k = 0; k < 80; k++)
				volume[i][j][k] = i + j + k;
#ifdef FIXED
	for (int i = 0; i < 50; i++)
		for (int j = 0; j < 60; j++)
			for (int k = 0; k < 80; k++)
#else
	for (int k = 0; k < 80; k++)
		for (int j = 0; j < 60; j++)
			for (int i = 0; i < 50; i++)
#endif
				sum += volume[i][j][k]; // planted: stride
	printf("%ld\n", sum);
}
