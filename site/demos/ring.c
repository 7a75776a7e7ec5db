/*
 * Four threads in a ring: each one fills a buffer of VALUES numbers, and the next
 * one makes its own numbers out of them, ROUNDS times around.
 *
 * Every value goes from one thread to the next and to nobody else, so what has to
 * be moved is known before the first measurement: the matrix of who sends to whom
 * has four entries, all alike.
 *
 * The threads take turns, one buffer at a time. The turns are what makes the trace
 * the same each time. They are not in it: semaphores belong to the C library, which
 * is not traced.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define THREADS 4
#define VALUES 256
#define ROUNDS 8

static long buffer[THREADS][VALUES] __attribute__((aligned(64)));
static sem_t turn[THREADS];

__attribute__((noinline)) static void pass_on(long *mine, const long *theirs)
{
    for (int i = 0; i < VALUES; i++)
        mine[i] = theirs[i] + 1;
}

static void *run(void *number)
{
    int me = (int)(long)number;
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(&turn[me]);
        pass_on(buffer[me], buffer[(me + THREADS - 1) % THREADS]);
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
    printf("%ld\n", buffer[THREADS - 1][0]);
    return 0;
}
