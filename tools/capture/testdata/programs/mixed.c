// Much of what C has: structs, bytes, function pointers, recursion, switch, goto,
// varargs, qsort, strings.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *left, *right;
	int16_t key;
	uint8_t bytes[5];
};

static struct node *insert(struct node *at, int key)
{
	if (!at) {
		at = calloc(1, sizeof *at);
		at->key = (int16_t)key;
		memset(at->bytes, key, sizeof at->bytes);
	} else if (key < at->key) {
		at->left = insert(at->left, key);
	} else if (key > at->key) {
		at->right = insert(at->right, key);
	}
	return at;
}

static long walk(const struct node *at) { return at ? walk(at->left) + at->key + at->bytes[2] + walk(at->right) : 0; }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int add(int count, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, count);
	while (count-- > 0)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

static int kind(int c)
{
	switch (c) {
	case 'a': return 1;
	case 'b':
	case 'c': return 2;
	case 'x': return 3;
	case ' ': return 4;
	default: return 5;
	}
}

int main(void)
{
	static int list[500];
	struct node *root = 0;
	unsigned seed = 7;
	for (int i = 0; i < 500; i++) {
		seed = seed * 1103515245 + 12345;
		list[i] = (int)(seed >> 16) % 1000;
		root = insert(root, list[i]);
	}
	qsort(list, 500, sizeof *list, compare);
	long sum = walk(root);
	for (const char *c = "a bxcq abba"; *c; c++)
		sum = sum * 3 + kind(*c);
	struct node copy = *root;
	char text[64];
	snprintf(text, sizeof text, "%d %d %ld", list[3], add(3, 1, 2, 3), sum);
	printf("%s %zu %d\n", text, strlen(text), copy.key);
	return 41;
}
