/*
 * A histogram by four threads, each with counters of its own, which lie in lines
 * with those of the others; then one thread adds them up.
 */
#include <sched.h>
#include <stdio.h>

#define VALUES 2048
#define BINS 16
#define THREADS 4

static unsigned values[VALUES];
static unsigned counts[BINS][THREADS];
static unsigned sums[BINS];

int main(void)
{
    unsigned x = 1;
    for (int i = 0; i < VALUES; i++)
        values[i] = (x = x * 1664525 + 1013904223) >> 28;
#pragma omp parallel for schedule(static, 1) num_threads(THREADS)
    for (int i = 0; i < VALUES; i += 16) {
        for (int j = i; j < i + 16; j++)
            counts[values[j]][i / 16 % THREADS]++;
        sched_yield();
    }
    for (int b = 0; b < BINS; b++)
        for (int t = 0; t < THREADS; t++)
            sums[b] += counts[b][t];
    printf("%u\n", sums[0]);
    return 0;
}
