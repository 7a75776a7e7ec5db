/*
 * A 5-point stencil by four threads, each with a band of rows: what a thread needs
 * of others are the rows along the seams. Threads yield after each row, so that they
 * take turns where there are fewer processors, too.
 */
#include <sched.h>
#include <stdio.h>

#define N 32
#define STEPS 4

static double grid[2][N][N] __attribute__((aligned(64)));

int main(void)
{
    for (int i = 0; i < N; i++)
        grid[0][i][0] = grid[1][i][0] = 1;
    for (int s = 0; s < STEPS; s++) {
#pragma omp parallel for schedule(static) num_threads(4)
        for (int i = 1; i < N - 1; i++) {
            for (int j = 1; j < N - 1; j++)
                grid[(s + 1) % 2][i][j] = (grid[s % 2][i][j] + grid[s % 2][i][j - 1] + grid[s % 2][i][j + 1] +
                                           grid[s % 2][i - 1][j] + grid[s % 2][i + 1][j]) / 5;
            sched_yield();
        }
    }
    printf("%g\n", grid[STEPS % 2][N / 2][1]);
    return 0;
}
