// A linked list whose nodes lie in another order than the one in which they are visited.
#include <stdio.h>
#include <stdlib.h>
#define N 40000
struct node {
	struct node *next;
	long value;
};

int main(void) {
	struct node *pool = malloc(N * sizeof *pool), *head = NULL;
	int *order = malloc(N * sizeof *order);
	for (int i = 0; i < N; i++)
		order[i] = i;
#ifndef FIXED
	unsigned seed = 1;
	for (int i = N - 1; i > 0; i--) {
		seed = seed * 1664525u + 1013904223u;
		int j = (seed >> 8) % (i + 1), t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
#endif
	for (int i = N - 1; i >= 0; i--) {
		struct node *n = &pool[order[i]];
		n->next = head;
		n->value = i;
		head = n;
	}
	long sum = 0;
	for (int pass = 0; pass < 25; pass++)
		for (struct node *n = head; n; n = n->next)
			sum += n->value; // planted: pointer-chasing
	printf("%ld\n", sum);
}
