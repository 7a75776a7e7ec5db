// Particles as an array of structures, of which the hot loop needs one field.
#include <stdio.h>
#include <stdlib.h>
#define N 40000
#ifdef FIXED
static long mass[N];
static double rest[N][11];
#define MASS(i) mass[i]
#else
struct particle {
	long mass;
	double position[3], velocity[3], charge, age, spin, pad[2];
};
static struct particle particles[N];
#define MASS(i) particles[i].mass
#endif

int main(void) {
	long sum = 0;
	for (int i = 0; i < N; i++)
		MASS(i) = i % 7;
	for (int pass = 0; pass < 20; pass++)
		for (int i = 0; i < N; i++)
			sum += MASS(i); // planted: layout
	printf("%ld\n", sum);
}
