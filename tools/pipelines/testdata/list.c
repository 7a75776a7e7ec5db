// A linked list in random order. -DNEXT_FIRST exchanges the two loads of a node.
#include <stdlib.h>

struct node {
  struct node *next;
  long v, rest[6];
};

__attribute__((noinline)) long walk(struct node *q) {
  long s = 0;
  while (q) {
#ifdef NEXT_FIRST
    struct node *next = *(struct node *volatile *)&q->next;
    s += *(volatile long *)&q->v;
    q = next;
#else
    s += *(volatile long *)&q->v;
    q = *(struct node *volatile *)&q->next;
#endif
  }
  return s;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 4000;
  struct node *nodes = aligned_alloc(64, n * sizeof *nodes);
  int *order = malloc(n * sizeof *order);
  unsigned seed = 1;
  for (int i = 0; i < n; i++)
    order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    seed = seed * 1664525u + 1013904223u;
    int j = (seed >> 8) % (i + 1), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  for (int i = 0; i < n; i++) {
    nodes[order[i]].next = i + 1 < n ? &nodes[order[i + 1]] : NULL;
    nodes[order[i]].v = i;
  }
  long s = 0;
  for (int r = 0; r < 4; r++)
    s += walk(nodes + order[0]);
  return s == 0;
}
