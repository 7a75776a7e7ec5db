#include <stdio.h>

enum { rows = 400, columns = 512 };
static double a[rows][columns], b[columns][rows];

int main(void) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            a[i][j] = i - j;
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            b[j][i] = a[i][j];
    printf("%g\n", b[7][5]);
}
