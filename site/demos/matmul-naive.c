/*
 * C = A × B for N × N matrices of doubles, in the order of the definition.
 *
 * The innermost loop walks along a row of A and down a column of B. A row is
 * contiguous: eight elements share a cache line. A column is not: every element
 * lies in a line of its own, and each of those lines is needed again only when
 * the next column is multiplied, N other lines later.
 *
 * Freestanding on purpose: no library and no start-up code, so that every
 * reference in the trace is one of the three matrices.
 */
#define N 32
#define ALIGNED __attribute__((aligned(64)))

double a[N][N] ALIGNED, b[N][N] ALIGNED, c[N][N] ALIGNED;

__attribute__((always_inline)) static inline void run(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

#include "start.h"
