#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <omp.h>
#define N 1024
#define G 64
#define STEPS 3
#define T 4

struct particle { double x, y, z, vx, vy, vz, mass, charge; char name[40]; int id, kind; double pad[2]; };
#ifndef PAD
#define PAD
#endif
struct tally { PAD long moved; double energy; };      /* 16 bytes: four in a line */

static struct particle *p;
static double field[G][G], old[G][G];
static volatile struct tally tally[T];

static void init(void) {
  p = malloc(N * sizeof *p);
  for (int i = 0; i < N; i++) {
    p[i].x = rand() % G; p[i].y = rand() % G; p[i].z = 0;
    p[i].vx = p[i].vy = p[i].vz = 0; p[i].mass = 1; p[i].charge = 1; p[i].id = i; p[i].kind = i & 1;
  }
}

static void smooth(void) {
#pragma omp parallel for num_threads(T)
  for (int j = 1; j < G - 1; j++)
    for (int i = 1; i < G - 1; i++)                  /* bad order: i is the row */
      field[i][j] = 0.25 * (old[i-1][j] + old[i+1][j] + old[i][j-1] + old[i][j+1]);
}

static void deposit(void) {
  for (int i = 0; i < N; i++)
    old[(int)p[i].x % G][(int)p[i].y % G] += p[i].charge;
}

static void push(double dt) {
#pragma omp parallel num_threads(T)
  {
    int t = omp_get_thread_num();
#pragma omp for
    for (int i = 0; i < N; i++) {
      int gx = (int)p[i].x % G, gy = (int)p[i].y % G;
      p[i].vx += field[gx][gy] * dt;
      p[i].vy -= field[gx][gy] * dt;
      p[i].x = fabs(p[i].x + p[i].vx * dt);
      p[i].y = fabs(p[i].y + p[i].vy * dt);
      tally[t].moved++;                              /* false sharing */
      tally[t].energy += 0.5 * p[i].mass * (p[i].vx * p[i].vx + p[i].vy * p[i].vy);
    }
  }
}

int main(void) {
  init();
  for (int s = 0; s < STEPS; s++) { deposit(); smooth(); push(0.01); }
  double e = 0; long m = 0;
  for (int t = 0; t < T; t++) { e += tally[t].energy; m += tally[t].moved; }
  printf("%ld moved, energy %g\n", m, e);
}
