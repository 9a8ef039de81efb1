/* One MINT step (common batch, penalty) on the tied-means mixture, by hand: what the library is measured against.
 * Prints microseconds per step and the acceptance rate. Build: cc -O3 -march=native -ffast-math. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef N
#define N 1000000
#endif
#ifndef M
#define M 1000
#endif

static uint64_t state[4] = {1, 2, 3, 4};

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t next_bits(void) { /* xoshiro256** */
  uint64_t result = rotate(state[1] * 5, 7) * 9, t = state[1] << 17;
  state[2] ^= state[0]; state[3] ^= state[1]; state[1] ^= state[2]; state[0] ^= state[3];
  state[2] ^= t; state[3] = rotate(state[3], 45);
  return result;
}

static double uniform(void) { return ((next_bits() >> 11) + 0.5) * 0x1p-53; }
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

static inline float log_likelihood(float x, float theta1, float theta2) {
  float first = x - theta1, second = first - theta2;
  first = -first * first * 0.25f;
  second = -second * second * 0.25f;
  return fmaxf(first, second) + logf(1.0f + expf(-fabsf(first - second)));
}

int main(int argc, char **argv) {
  long steps = argc > 1 ? atol(argv[1]) : 300000;
  float step_size = argc > 2 ? atof(argv[2]) : 0.85f, n_eff = pow(N, 0.25);
  float *x = malloc(sizeof(float) * (N + M)), change[M], theta[2] = {0.5f, 0.0f};
  for (int i = 0; i < N; i++) x[i] = normal() * sqrt(2) + (next_bits() & 1);
  for (int i = 0; i < M; i++) x[N + i] = x[i];
  long accepted = 0;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long step = 0; step < steps; step++) {
    const float *batch = x + next_bits() % N;
    float p1 = theta[0] + step_size * normal(), p2 = theta[1] + step_size * normal(), sum = 0, squares = 0;
    for (int i = 0; i < M; i++)
      change[i] = log_likelihood(batch[i], p1, p2) - log_likelihood(batch[i], theta[0], theta[1]);
    for (int i = 0; i < M; i++) sum += change[i];
    float mean = sum / M;
    for (int i = 0; i < M; i++) squares += (change[i] - mean) * (change[i] - mean);
    float noise = n_eff * n_eff * squares / (M - 1) / M * (1 - (float)M / N);
    if (log(uniform()) < n_eff * mean - noise / 2) { theta[0] = p1; theta[1] = p2; accepted++; }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9;
  printf("%.4f %.4f\n", seconds / steps * 1e6, (double)accepted / steps);
  return 0;
}
