// Breadth-first search, level by level: all nodes are looked at in each, and those of the
// frontier open their neighbours in a copy that becomes the next frontier.
#define NODES 3000
#define DEGREE 5

static int neighbours[NODES][DEGREE], cost[NODES];
static unsigned char frontier[NODES], reached[NODES], visited[NODES];

int main(void) {
	unsigned state = 12345;
	for (int n = 0; n < NODES; n++) {
		cost[n] = -1;
		for (int e = 0; e < DEGREE; e++) {
			state = state * 1664525u + 1013904223u;
			neighbours[n][e] = (int)((state >> 8) % NODES);
		}
	}
	frontier[0] = visited[0] = 1;
	cost[0] = 0;
	for (int more = 1; more;) {
		more = 0;
#pragma omp parallel for
		for (int n = 0; n < NODES; n++) {
			if (!frontier[n])
				continue;
			for (int e = 0; e < DEGREE; e++) {
				int to = neighbours[n][e];
				if (!visited[to])
					reached[to] = 1;
			}
		}
#pragma omp parallel for reduction(| : more)
		for (int n = 0; n < NODES; n++) {
			frontier[n] = 0;
			if (reached[n]) {
				reached[n] = 0;
				frontier[n] = visited[n] = 1;
				cost[n] = 1;
				more |= 1;
			}
		}
	}
	return cost[NODES - 1] > NODES;
}
