#include <pthread.h>
#include <stdio.h>

/* Four threads count in one line. They are done before the next one begins. */
static struct { long n; } counter[4];

static void *count(void *p) {
  volatile long *c = &counter[(long)p].n;
  for (int i = 0; i < 5000; i++) (*c)++;
  return 0;
}

int main(void) {
  pthread_t t[4];
  long sum = 0;
  for (long i = 0; i < 4; i++) {
    pthread_create(&t[i], 0, count, (void *)i);
    pthread_join(t[i], 0);
  }
  for (long i = 0; i < 4; i++) sum += counter[i].n;
  printf("%ld\n", sum);
}
