/*
 * A 5-point stencil on an N × N grid, STEPS times, by two threads: every point
 * becomes the mean of itself and its four neighbours.
 *
 * The static schedule gives each thread one half of the rows, the same in every
 * step. What a thread writes in one step it reads in the next, and of the other
 * half it needs one row only: the one on the other side of the seam.
 */
#include <stdio.h>

#define N 64
#define STEPS 6

static double grid[2][N][N] __attribute__((aligned(64)));

__attribute__((noinline)) static void step(double (*to)[N], double (*from)[N])
{
#pragma omp parallel for schedule(static) num_threads(2)
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
