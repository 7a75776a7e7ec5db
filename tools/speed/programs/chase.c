// irregular: a list whose nodes lie in random order
#include <stdio.h>

#define NODES 200000
#define STEPS 5000000

static struct node { struct node *next; long value; } nodes[NODES];
static int order[NODES];

int main(void) {
	unsigned state = 9;
	for (int i = 0; i < NODES; i++)
		order[i] = i;
	for (int i = NODES - 1; i > 0; i--) {
		state = state * 1664525u + 1013904223u;
		int j = (state >> 4) % (i + 1), held = order[i];
		order[i] = order[j];
		order[j] = held;
	}
	for (int i = 0; i < NODES; i++)
		nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
	long sum = 0;
	struct node *n = nodes;
	for (int i = 0; i < STEPS; i++, n = n->next)
		sum += n->value;
	printf("%ld\n", sum);
}
