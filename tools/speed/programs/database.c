// irregular: a B-tree of 8-byte keys, insertions and look-ups
#include <stdio.h>

#define ORDER 32
#define KEYS 120000

struct node { int count, leaf, child[ORDER + 1]; unsigned key[ORDER]; };

static struct node nodes[KEYS / 8];
static int used, root;

static void split(int parent, int at) {
	struct node *p = &nodes[parent], *left = &nodes[p->child[at]], *right = &nodes[used];
	int half = ORDER / 2;
	right->leaf = left->leaf;
	right->count = ORDER - half - 1;
	for (int i = 0; i < right->count; i++)
		right->key[i] = left->key[half + 1 + i];
	for (int i = 0; i <= right->count && !left->leaf; i++)
		right->child[i] = left->child[half + 1 + i];
	left->count = half;
	for (int i = p->count; i > at; i--) {
		p->key[i] = p->key[i - 1];
		p->child[i + 1] = p->child[i];
	}
	p->key[at] = left->key[half];
	p->child[at + 1] = used++;
	p->count++;
}

static void insert(unsigned key) {
	if (nodes[root].count == ORDER) {
		int old = root;
		root = used++;
		nodes[root].child[0] = old;
		split(root, 0);
	}
	int at = root;
	for (;;) {
		struct node *n = &nodes[at];
		int i = n->count;
		if (n->leaf) {
			for (; i > 0 && n->key[i - 1] > key; i--)
				n->key[i] = n->key[i - 1];
			n->key[i] = key;
			n->count++;
			return;
		}
		while (i > 0 && n->key[i - 1] > key)
			i--;
		if (nodes[n->child[i]].count == ORDER) {
			split(at, i);
			if (key > n->key[i])
				i++;
		}
		at = n->child[i];
	}
}

static int has(unsigned key) {
	for (int at = root;;) {
		struct node *n = &nodes[at];
		int low = 0, high = n->count;
		while (low < high) {
			int middle = (low + high) / 2;
			if (n->key[middle] < key)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < n->count && n->key[low] == key)
			return 1;
		if (n->leaf)
			return 0;
		at = n->child[low];
	}
}

int main(void) {
	unsigned state = 13;
	nodes[0].leaf = 1;
	used = 1;
	int found = 0;
	for (int i = 0; i < KEYS; i++)
		insert((state = state * 1664525u + 1013904223u) >> 4);
	state = 13;
	for (int i = 0; i < 2 * KEYS; i++)
		found += has((state = state * 1664525u + 1013904223u) >> 4);
	printf("%d %d\n", found, used);
}
