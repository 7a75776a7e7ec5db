/*
 * C = A × B for N × N matrices of doubles, in the order of the definition.
 *
 * The innermost loop walks along a row of A and down a column of B. A row is
 * contiguous: eight elements share a cache line. A column is not: every element
 * lies in a line of its own, and each of those lines is needed again only when
 * the next column is multiplied, N other lines later.
 */
#define N 32
#define ALIGNED __attribute__((aligned(64)))

double a[N][N] ALIGNED, b[N][N] ALIGNED, c[N][N] ALIGNED;

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    return 0;
}
