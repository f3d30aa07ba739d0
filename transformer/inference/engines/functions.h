/* Functions of one number, written so that compilers vectorise loops of them. */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* e^x for x <= 0, with an error below 2e-7: 2^n e^r with |r| <= ln(2) / 2; the coefficients of the
 * polynomial are those of Cephes' expf. */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* x (1 + erf(x / sqrt 2)) / 2; erf by 7.1.26 of Abramowitz & Stegun, within 1.5e-7. */
static inline float gelu(float x) {
    float z = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    float rest = p * t * exponential(-z * z); /* 1 - erf(z) */
    return 0.5f * x * (x < 0 ? rest : 2.0f - rest);
}

/* x / (1 + e^-by). */
static inline float part(float x, float by) {
    float power = exponential(-fabsf(by));
    return (by < 0 ? power * x : x) / (1.0f + power);
}

static inline float silu(float x) { return part(x, x); }

/* x (1 + tanh(z)) / 2 = x / (1 + e^(-2 z)) with z = sqrt(2 / pi) (x + 0.044715 x^3). */
static inline float gelu_tanh(float x) {
    return part(x, 1.59576912f * (x + 0.044715f * x * x * x));
}

/* cap tanh(x / cap), of n numbers. */
static void soft_cap(float *restrict x, int n, float cap) {
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float power = exponential(-2.0f * fabsf(x[i]) / cap);
        float size = cap * (1.0f - power) / (1.0f + power);
        x[i] = x[i] < 0 ? -size : size;
    }
}

enum { RELU, GELU, GELU_TANH, SILU }; /* in the order of description.py */

static void activate(int which, float *restrict x, int n) {
    switch (which) {
    case RELU:
        for (int i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0;
        break;
    case GELU:
#pragma omp simd
        for (int i = 0; i < n; i++) x[i] = gelu(x[i]);
        break;
    case GELU_TANH:
#pragma omp simd
        for (int i = 0; i < n; i++) x[i] = gelu_tanh(x[i]);
        break;
    case SILU:
#pragma omp simd
        for (int i = 0; i < n; i++) x[i] = silu(x[i]);
        break;
    }
}
