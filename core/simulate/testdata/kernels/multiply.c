/*
 * A matrix product by three threads, which take rows as they come free. All read
 * the second factor; a row of the result belongs to whoever took it.
 */
#include <sched.h>
#include <stdio.h>

#define N 18

static double a[N][N], b[N][N], c[N][N];

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
        }
#pragma omp parallel for schedule(dynamic, 1) num_threads(3)
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
            sched_yield();
        }
    printf("%g\n", c[N - 1][N - 1]);
    return 0;
}
