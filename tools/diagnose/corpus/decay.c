// Every cell relaxes towards its own target, in many small time steps.
#include <stdio.h>
#include <stdlib.h>

typedef struct { int cells, steps; double *value, *target; } Model;

static void advance(Model *m, double dt) {
#ifdef FIXED
	for (int b = 0; b < m->cells; b += 1024)
		for (int t = 0; t < m->steps; t++)
			for (int i = b; i < b + 1024; i++)
				m->value[i] += dt * (m->target[i] - m->value[i]);
#else
	for (int t = 0; t < m->steps; t++)
		for (int i = 0; i < m->cells; i++)
			m->value[i] += dt * (m->target[i] - m->value[i]); // planted: capacity
#endif
}

int main(void) {
	Model m = {200 * 1024, 14, NULL, NULL};
	m.value = malloc(m.cells * sizeof(double));
	m.target = malloc(m.cells * sizeof(double));
	for (int i = 0; i < m.cells; i++) { m.value[i] = i % 13; m.target[i] = 100 - i % 7; }
	advance(&m, 0.05);
	double s = 0;
	for (int i = 0; i < m.cells; i += 97) s += m.value[i];
	printf("%g\n", s);
	return 0;
}
