// Threads whose traffic is known: values around a ring, a transpose in which all
// give to all, and a broadcast. Everybody reads each value once.
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, VALUES = 10 };

static long ring[THREADS][VALUES];
static long matrix[THREADS][THREADS];
static volatile long transposed[THREADS][THREADS]; // which nobody reads
static long announced[VALUES];
static long sums[THREADS];
static pthread_barrier_t barrier;

static void pass_on(int me) {
  if (me == 0)
    for (int k = 0; k < VALUES; k++)
      ring[0][k] = k;
  for (int turn = 1; turn < THREADS; turn++) {
    pthread_barrier_wait(&barrier);
    if (turn == me)
      for (int k = 0; k < VALUES; k++)
        ring[me][k] = ring[me - 1][k] + 1;
  }
  pthread_barrier_wait(&barrier);
  long sum = 0;
  if (me == 0)
    for (int k = 0; k < VALUES; k++)
      sum += ring[THREADS - 1][k];
  sums[me] = sum;
}

static void transpose(int me) {
  for (int j = 0; j < THREADS; j++)
    matrix[me][j] = me + j;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < THREADS; i++)
    transposed[me][i] = matrix[i][me];
}

static void broadcast(int me) {
  if (me == 0)
    for (int k = 0; k < VALUES; k++)
      announced[k] = k * k;
  pthread_barrier_wait(&barrier);
  long sum = 0;
  for (int k = 0; k < VALUES; k++)
    sum += announced[k];
  sums[me] += sum;
}

static void *work(void *number) {
  int me = (int)(intptr_t)number;
  pass_on(me);
  transpose(me);
  broadcast(me);
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, 0, THREADS);
  for (intptr_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
  return 0;
}
