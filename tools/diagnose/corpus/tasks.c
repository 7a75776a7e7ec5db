/* A run queue: tasks linked by offsets in one arena, sorted by nothing. */
// options: -O0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct task { unsigned next; int prio; long budget; int owner, cost; char pad[8]; };

static char *arena;
static struct task *at(unsigned off) { return (struct task *)(arena + off); }

static long run(unsigned head) {
	long total = 0;
	for (unsigned off = head; off != 0; ) {
		struct task *t = at(off);
		if (t->prio > 2) /* planted: pointer-chasing */
			total += t->budget;
		off = t->next;
	}
	return total;
}

int main(void) {
	int n = 30000;
	arena = calloc(n + 1, sizeof(struct task));
	int *order = malloc(n * sizeof *order);
	for (int i = 0; i < n; i++) order[i] = i + 1;
	unsigned r = 11;
	for (int i = n - 1; i > 0; i--) {
		r = r * 1103515245u + 12345u;
		int j = (r >> 8) % (i + 1), t = order[i];
#ifdef FIXED
		j = i;
#endif
		order[i] = order[j]; order[j] = t;
	}
	for (int i = 0; i < n; i++) {
		struct task *t = at(order[i] * sizeof(struct task));
		t->prio = i % 5; t->budget = i;
		t->next = i + 1 < n ? order[i + 1] * sizeof(struct task) : 0;
	}
	long s = 0;
	for (int k = 0; k < 7; k++) s += run(order[0] * sizeof(struct task));
	printf("%ld\n", s);
	return 0;
}
