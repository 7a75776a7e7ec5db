/*
 * Four threads count what they find, each in a counter of its own. Every counter has
 * a cache line to itself.
 *
 * Its twin false-sharing differs in one line: there the counters are neighbours in
 * one cache line, which a core that counts takes away from all others. Here each
 * line stays where it is used.
 *
 * The threads take turns, number by number, as they would on four cores of the same
 * speed. The turns are what makes the trace the same each time. They are not in
 * it: semaphores belong to the C library, which is not traced.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define THREADS 4
#define NUMBERS 2048

static struct counter {
    _Alignas(64) long found;
} counters[THREADS] __attribute__((aligned(64)));

static int numbers[THREADS][NUMBERS] __attribute__((aligned(64)));
static sem_t turn[THREADS];

__attribute__((noinline)) static void look(volatile long *found, const int *number)
{
    if (*number % 3 != 1)
        ++*found;
}

static void *run(void *number)
{
    int me = (int)(long)number;
    for (int i = 0; i < NUMBERS; i++) {
        sem_wait(&turn[me]);
        look(&counters[me].found, &numbers[me][i]);
        sem_post(&turn[(me + 1) % THREADS]);
    }
    return 0;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS; i++)
        sem_init(&turn[i], 0, 0);
    for (long i = 1; i < THREADS; i++)
        if (pthread_create(&thread[i], 0, run, (void *)i) != 0)
            return 1;
    sem_post(&turn[0]);
    run((void *)0);
    for (long i = 1; i < THREADS; i++)
        pthread_join(thread[i], 0);
    printf("%ld\n", counters[0].found + counters[1].found + counters[2].found + counters[3].found);
    return 0;
}
