/*
 * Two threads count, each in a counter of its own: first in counters that are
 * neighbours, then in counters with the rest of a cache line between them.
 *
 * No thread ever looks at the other's counter, so the program is right, and
 * both halves make the same references. But neighbours lie in one cache line,
 * and a core that writes a line takes it away from all other cores: in the first
 * half the line goes to and fro, in the second both lines stay where they are.
 *
 * The threads take turns, count by count, as they would on two cores of the same
 * speed. The turns are what makes the trace the same each time. They are not in
 * it: semaphores belong to the C library, which is not traced.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define TURNS 10000
#define LINE 64

static struct {
    volatile long left, right;
} neighbours __attribute__((aligned(LINE)));

static struct {
    volatile long left;
    char between[LINE - sizeof(long)];
    volatile long right;
} apart __attribute__((aligned(LINE)));

static sem_t turn_of_left, turn_of_right;

__attribute__((noinline)) static void count(volatile long *counter, sem_t *mine, sem_t *other)
{
    for (int i = 0; i < TURNS; i++) {
        sem_wait(mine);
        ++*counter;
        sem_post(other);
    }
}

static void *right(void *unused)
{
    sem_post(&turn_of_left);
    count(&neighbours.right, &turn_of_right, &turn_of_left);
    count(&apart.right, &turn_of_right, &turn_of_left);
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, 0, right, 0) != 0)
        return 1;
    count(&neighbours.left, &turn_of_left, &turn_of_right);
    count(&apart.left, &turn_of_left, &turn_of_right);
    pthread_join(thread, 0);
    printf("%ld %ld %ld %ld\n", neighbours.left, neighbours.right, apart.left, apart.right);
    return 0;
}
