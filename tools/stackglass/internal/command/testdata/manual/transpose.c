#include <stdio.h>

enum { rows = 600, columns = 600 };
static double a[rows][columns], b[columns][rows];

int main(void) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            a[i][j] = i - j;
    for (int i = 0; i < columns; i++)
        for (int j = 0; j < rows; j++)
            b[i][j] = a[j][i];
    printf("%g\n", b[7][5]);
}
