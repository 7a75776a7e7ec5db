/*
 * Four threads draw tickets from one counter and add what they worked out to one
 * sum, a lock around both, as in a queue of work.
 *
 * Counter and sum lie in one line, and the line migrates: each thread in turn reads
 * it, writes it, and leaves it to the next one. No cache is too small for one line,
 * and none is large enough: what is missed was not evicted but taken away.
 *
 * Between two tickets each thread works on numbers of its own, which nobody takes.
 *
 * The threads take turns. The turns are what makes the trace the same each time.
 * They are not in it: semaphores belong to the C library, which is not traced.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#define THREADS 4
#define TICKETS 512
#define WORK 32

static struct {
    volatile long next, sum;
} queue __attribute__((aligned(64)));

static long numbers[THREADS][WORK] __attribute__((aligned(64)));
static sem_t turn[THREADS];

__attribute__((noinline)) static long work(long *own, long ticket)
{
    long sum = 0;
    for (int i = 0; i < WORK; i++)
        sum += own[i] += ticket;
    return sum;
}

__attribute__((noinline)) static long draw(void)
{
    return queue.next++;
}

__attribute__((noinline)) static void deliver(long result)
{
    queue.sum += result;
}

static void *run(void *number)
{
    int me = (int)(long)number;
    for (int i = 0; i < TICKETS / THREADS; i++) {
        sem_wait(&turn[me]);
        deliver(work(numbers[me], draw()));
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
    printf("%ld %ld\n", queue.next, queue.sum);
    return 0;
}
