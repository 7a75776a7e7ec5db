#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct particle {
	double x, y, z;
	double vx, vy, vz;
	double mass;
	int kind;
	char name[44];
};

struct node {
	long key;
	struct node *next;
	char payload[48];
};

static double grid[64][64];

static void move(struct particle *p, int n, double dt) {
	for (int i = 0; i < n; i++) {
		p[i].x += dt * p[i].vx;
		p[i].y += dt * p[i].vy;
		p[i].z += dt * p[i].vz;
	}
}

static double energy(const struct particle *p, int n) {
	double e = 0;
	for (int i = 0; i < n; i++)
		e += p[i].mass * (p[i].vx * p[i].vx + p[i].vy * p[i].vy + p[i].vz * p[i].vz);
	return e;
}

static struct node *push(struct node *head, long key) {
	struct node *n = malloc(sizeof *n);
	n->key = key;
	n->next = head;
	memset(n->payload, 0, sizeof n->payload);
	return n;
}

static long total(const struct node *n) {
	long sum = 0;
	for (; n; n = n->next)
		sum += n->key;
	return sum;
}

int main(void) {
	int n = 1000;
	struct particle *all = calloc(n, sizeof *all);
	for (int i = 0; i < n; i++) {
		all[i].vx = i;
		all[i].mass = 1;
		all[i].kind = i & 3;
	}
	double e = 0;
	for (int step = 0; step < 6; step++) {
		move(all, n, 0.1);
		e += energy(all, n);
	}
	struct node *head = NULL;
	for (long i = 0; i < 600; i++)
		head = push(head, i);
	long sum = 0;
	for (int round = 0; round < 3; round++)
		sum += total(head);
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 64; j++)
			grid[j][i] += e;
	printf("%g %ld %g\n", e, sum, grid[3][4]);
	while (head) {
		struct node *next = head->next;
		free(head);
		head = next;
	}
	free(all);
	return 0;
}
