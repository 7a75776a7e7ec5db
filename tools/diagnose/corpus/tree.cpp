// A search tree whose nodes were allocated in the order of insertion, summed up in order.
// options: -O0
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>
struct node {
	uint32_t key;
	node *left, *right;
};

static uint64_t sum(const node *n) {
	uint64_t s = 0;
	while (n) {
		s += n->key + (n->left ? sum(n->left) : 0); // planted: pointer-chasing
		n = n->right;
	}
	return s;
}

static size_t next;

static node *build(std::vector<node *> &in, size_t lo, size_t hi) {
	if (lo >= hi)
		return nullptr;
	size_t mid = (lo + hi) / 2;
#ifdef FIXED
	node *n = in[next++];
#else
	node *n = in[mid];
#endif
	n->key = mid;
	n->left = build(in, lo, mid);
	n->right = build(in, mid + 1, hi);
	return n;
}

int main() {
	const size_t n = 60000;
	std::vector<node *> all(n);
	for (auto &p : all)
		p = new node();
#ifndef FIXED
	uint32_t seed = 1;
	for (size_t i = n - 1; i > 0; i--) {
		seed = seed * 1664525u + 1013904223u;
		std::swap(all[i], all[(seed >> 8) % (i + 1)]);
	}
#endif
	node *root = build(all, 0, n);
	uint64_t s = 0;
	for (int pass = 0; pass < 6; pass++)
		s += sum(root);
	std::printf("%llu\n", (unsigned long long)s);
}
