// Bodies as a structure of arrays, used through an index in random order.
#include <stdio.h>
#include <stdlib.h>
#define N (1 << 17)
#define PAIRS 500000
#ifdef FIXED
static struct { float x, y, z, mass; } body[N];
#define X(i) body[i].x
#define Y(i) body[i].y
#define Z(i) body[i].z
#define MASS(i) body[i].mass
#else
static struct { float x[N], y[N], z[N], mass[N]; } body;
#define X(i) body.x[i]
#define Y(i) body.y[i]
#define Z(i) body.z[i]
#define MASS(i) body.mass[i]
#endif
static unsigned pair[PAIRS];

static float pull(unsigned i) {
	return MASS(i) * (X(i) + Y(i) + Z(i)); // planted: layout
}

int main(void) {
	unsigned seed = 1;
	for (int i = 0; i < N; i++)
		X(i) = Y(i) = Z(i) = MASS(i) = i;
	for (int n = 0; n < PAIRS; n++) {
		seed = seed * 1664525u + 1013904223u;
		pair[n] = seed >> 15;
	}
	float sum = 0;
	for (int n = 0; n < PAIRS; n++)
		sum += pull(pair[n]);
	printf("%g\n", sum);
}
