/*
 * The sum of the same N numbers, WALKS times from an array, then WALKS times
 * from a linked list.
 *
 * The array is walked in order: eight numbers share a cache line, and a line is
 * done with before the next one begins. The list's nodes are linked in the
 * order of a full-period linear congruential generator, as after a long life of
 * insertions: neighbours in the list are far apart in memory, and the four
 * nodes that share a line are visited at four different times.
 */
#define N 2048
#define WALKS 16

struct node {
    long value;
    struct node *next;
};

long array[N] __attribute__((aligned(64)));
struct node list[N] __attribute__((aligned(64)));
static volatile long sink;

__attribute__((noinline)) static long walk_array(void)
{
    long sum = 0;
    for (int i = 0; i < N; i++)
        sum += array[i];
    return sum;
}

__attribute__((noinline)) static long walk_list(void)
{
    long sum = 0;
    struct node *n = list;
    do {
        sum += n->value;
        n = n->next;
    } while (n != list);
    return sum;
}

int main(void)
{
    for (int i = 0; i < N; i++)
        array[i] = i;
    for (int w = 0; w < WALKS; w++)
        sink = walk_array();
    for (unsigned i = 0; i < N; i++) {
        list[i].value = i;
        list[i].next = &list[(i * 1229u + 757u) % N];
    }
    for (int w = 0; w < WALKS; w++)
        sink = walk_list();
    return 0;
}
