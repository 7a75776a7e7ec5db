/*
 * C = A × B for N × N matrices of doubles, in blocks of T × T.
 *
 * The same multiplications and additions as in matmul-naive.c, in an order that
 * finishes with three small blocks before it goes on to the next ones. A block
 * of eight doubles by eight is eight cache lines, so that three of them, 24
 * lines, are all that the innermost three loops need.
 */
#define N 32
#define ALIGNED __attribute__((aligned(64)))
#define T 8

double a[N][N] ALIGNED, b[N][N] ALIGNED, c[N][N] ALIGNED;

int main(void)
{
    for (int ii = 0; ii < N; ii += T)
        for (int jj = 0; jj < N; jj += T)
            for (int kk = 0; kk < N; kk += T)
                for (int i = ii; i < ii + T; i++)
                    for (int j = jj; j < jj + T; j++) {
                        double sum = c[i][j];
                        for (int k = kk; k < kk + T; k++)
                            sum += a[i][k] * b[k][j];
                        c[i][j] = sum;
                    }
    return 0;
}
