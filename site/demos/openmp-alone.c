/*
 * The 5-point stencil of openmp-stencil on a larger grid, with as many threads as
 * OMP_NUM_THREADS says. The demo is a run with one: it does all of the work, and
 * what several would do is predicted from it.
 *
 * Both grids together are 144 KiB. Divided among cores by rows, the parts fit in
 * their caches, if each core gets the same rows in every step.
 */
#include <stdio.h>

#define N 96
#define STEPS 4

static double grid[2][N][N] __attribute__((aligned(64)));

__attribute__((noinline)) static void step(double (*to)[N], double (*from)[N])
{
#pragma omp parallel for schedule(static)
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = (from[i][j] + from[i][j - 1] + from[i][j + 1] +
                        from[i - 1][j] + from[i + 1][j]) / 5;
}

int main(void)
{
    for (int i = 0; i < N; i++)
        grid[0][i][0] = grid[1][i][0] = 1;
    for (int s = 0; s < STEPS; s++)
        step(grid[(s + 1) % 2], grid[s % 2]);
    printf("%g\n", grid[STEPS % 2][N / 2][1]);
    return 0;
}
