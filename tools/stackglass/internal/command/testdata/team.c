/*
 * Work that threads share in several ways: a stencil with rows dealt out in equal parts, a
 * triangle whose rows shrink, in chunks of two to whoever is free, and a sum. The first
 * values are set by one thread alone.
 */
#include <stdio.h>

#define N 48
#define STEPS 3

static double grid[2][N][N] __attribute__((aligned(64)));
static double row[N];

__attribute__((noinline)) static void step(double (*to)[N], double (*from)[N])
{
#pragma omp parallel for schedule(static)
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = (from[i][j] + from[i][j - 1] + from[i][j + 1] +
                        from[i - 1][j] + from[i + 1][j]) / 5;
}

__attribute__((noinline)) static double triangle(double (*from)[N])
{
    double sum = 0;
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 2)
        for (int i = 0; i < N; i++) {
            double r = 0;
            for (int j = i; j < N; j++)
                r += from[i][j] * from[j][i];
            row[i] = r;
        }
#pragma omp for schedule(static) reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += row[i];
    }
    return sum;
}

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            grid[0][i][j] = grid[1][i][j] = i == j;
    for (int s = 0; s < STEPS; s++)
        step(grid[(s + 1) % 2], grid[s % 2]);
    printf("%g\n", triangle(grid[STEPS % 2]));
    return 0;
}
