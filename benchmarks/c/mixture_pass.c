/* Value and gradient of the 50-component tied mixture's log-likelihood over all rows, by hand: the limit of a full pass.
 *   sum_i log sum_j exp(x_i theta_j - theta_j^2 / 2),    and its derivatives, sum_i p_ij (x_i - theta_j).
 * Arguments: passes, threads. Prints milliseconds of a pass by the clock, the value, and the first derivative.
 * Build: cc -O3 -march=native -ffast-math -pthread. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef N
#define N 100000
#endif
#define D 50
#define PADDED 64 /* a multiple of the vector's length; the rest weighs nothing */
#define MOST 64

typedef struct { long first, last; double value, gradient[D]; } Part;

static float *x, theta[PADDED], half_square[PADDED];
static Part parts[MOST];
static pthread_barrier_t begin, end;
static long passes;

static uint64_t bits = 88172645463325252ull;
static double uniform(void) { /* xorshift64 */
  bits ^= bits << 13; bits ^= bits >> 7; bits ^= bits << 17;
  return ((bits >> 11) + 0.5) * 0x1p-53;
}
static double normal(void) {
  double radius = sqrt(-2 * log(uniform())), angle = 6.283185307179586 * uniform();
  return radius * cos(angle);
}

static void sum_rows(Part *part) {
  float weighted[PADDED] = {0}, weights[PADDED] = {0}; /* sum_i p_ij x_i, sum_i p_ij */
  double value = 0;
  for (int j = 0; j < D; j++) part->gradient[j] = 0;
  for (long i = part->first; i < part->last; i++) {
    float e[PADDED], sum = 0, xi = x[i];
    for (int j = 0; j < PADDED; j++) e[j] = expf(xi * theta[j] - half_square[j]);
    for (int j = 0; j < PADDED; j++) sum += e[j];
    value += logf(sum);
    float share = 1 / sum, moved = share * xi;
    for (int j = 0; j < PADDED; j++) { weights[j] += e[j] * share; weighted[j] += e[j] * moved; }
    if ((i & 511) == 511 || i + 1 == part->last) /* in blocks, so that float32 suffices */
      for (int j = 0; j < PADDED; j++) {
        if (j < D) part->gradient[j] += (double)weighted[j] - (double)theta[j] * weights[j];
        weights[j] = weighted[j] = 0;
      }
  }
  part->value = value;
}

static void *work(void *part) {
  for (long pass = 0; pass < passes; pass++) {
    pthread_barrier_wait(&begin);
    sum_rows(part);
    pthread_barrier_wait(&end);
  }
  return NULL;
}

int main(int argc, char **argv) {
  passes = argc > 1 ? atol(argv[1]) : 100;
  long threads = argc > 2 ? atol(argv[2]) : 1;
  if (threads < 1 || threads > MOST) return 1;
  x = malloc(sizeof(float) * N);
  for (long i = 0; i < N; i++) {
    x[i] = normal();
    if (uniform() < 1.0 / D) x[i] += 2;
  }
  pthread_barrier_init(&begin, NULL, threads);
  pthread_barrier_init(&end, NULL, threads);
  pthread_t others[MOST];
  for (long t = 0; t < threads; t++) {
    parts[t].first = N * t / threads;
    parts[t].last = N * (t + 1) / threads;
    if (t) pthread_create(&others[t], NULL, work, &parts[t]);
  }
  double value = 0, gradient = 0;
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (long pass = 0; pass < passes; pass++) {
    for (int j = 0; j < PADDED; j++) {
      theta[j] = j == 0 ? 2 + 1e-6f * pass : 0.01f * (j % 7);
      half_square[j] = j < D ? theta[j] * theta[j] / 2 : 1e4f;
    }
    pthread_barrier_wait(&begin);
    sum_rows(&parts[0]);
    pthread_barrier_wait(&end);
    value = gradient = 0;
    for (long t = 0; t < threads; t++) { value += parts[t].value; gradient += parts[t].gradient[0]; }
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  for (long t = 1; t < threads; t++) pthread_join(others[t], NULL);
  double seconds = (ended.tv_sec - begun.tv_sec) + (ended.tv_nsec - begun.tv_nsec) * 1e-9;
  printf("%.6f %.6f %.6f\n", seconds / passes * 1e3, value, gradient);
  return 0;
}
