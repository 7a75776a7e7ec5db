#include <stdio.h>

enum { height = 600, width = 200, times = 10 };
static float in[height][width], out[height][width];

int main(void) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            in[y][x] = (float)((x * y) % 256);
    for (int t = 0; t < times; t++)
        for (int y = 1; y < height - 1; y++)
            for (int x = 0; x < width; x++)
                out[y][x] += in[y - 1][x] + in[y][x] + in[y + 1][x];
    printf("%g\n", out[height / 2][width / 2]);
}
