// irregular: breadth-first search of a random graph
#include <stdio.h>

#define NODES 100000
#define DEGREE 8

static int edges[NODES][DEGREE], distance[NODES], queue[NODES];

int main(void) {
	unsigned state = 1;
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < DEGREE; k++) {
			state = state * 1664525u + 1013904223u;
			edges[i][k] = (state >> 8) % NODES;
		}
	for (int root = 0; root < 3; root++) {
		for (int i = 0; i < NODES; i++)
			distance[i] = -1;
		int head = 0, tail = 0;
		queue[tail++] = root;
		distance[root] = 0;
		while (head < tail) {
			int node = queue[head++];
			for (int k = 0; k < DEGREE; k++) {
				int next = edges[node][k];
				if (distance[next] < 0) {
					distance[next] = distance[node] + 1;
					queue[tail++] = next;
				}
			}
		}
	}
	printf("%d\n", distance[NODES - 1]);
}
