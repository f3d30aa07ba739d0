/* Vectors of WIDTH bytes of float32, from weights of each stored type, at any address.
 * Included once for each WIDTH, which ends all names. */
#define JOIN(name, ending) name##_##ending
#define WITH(name, ending) JOIN(name, ending)
#define SIZED(name) WITH(name, WIDTH)

typedef float SIZED(Lanes) __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef uint32_t SIZED(Words) __attribute__((vector_size(WIDTH)));
typedef uint16_t SIZED(Halves) __attribute__((vector_size(WIDTH / 2), aligned(2), may_alias));

static inline SIZED(Lanes) SIZED(from_float32)(const float *at) {
    return *(const SIZED(Lanes) *)at;
}

/* A bfloat16 is the first half of a float32. */
static inline SIZED(Lanes) SIZED(from_bfloat16)(const uint16_t *at) {
    return (SIZED(Lanes))(__builtin_convertvector(*(const SIZED(Halves) *)at, SIZED(Words)) << 16);
}

/* A finite float16 has 5 bits of exponent, counted from 15, and 10 of fraction. */
static inline SIZED(Lanes) SIZED(from_float16)(const uint16_t *at) {
#if WIDTH == 64 && defined(__AVX512F__)
    return (SIZED(Lanes))_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)at));
#elif WIDTH == 32 && defined(__F16C__)
    return (SIZED(Lanes))_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at));
#elif WIDTH == 16 && defined(__F16C__)
    return (SIZED(Lanes))_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)at));
#else
    SIZED(Words) bits = __builtin_convertvector(*(const SIZED(Halves) *)at, SIZED(Words));
    SIZED(Words) size = (bits & 0x7fff) << 13, sign = (bits & 0x8000) << 16;
    return (SIZED(Lanes))((SIZED(Words))((SIZED(Lanes))size * 0x1p112f) | sign);
#endif
}

/* Four sums first: in a single chain, each addition would wait for the last. */
static inline float SIZED(total)(SIZED(Lanes) x) {
    Four sums = {0};
    for (int i = 0; i < WIDTH / 16; i++) {
        Four part;
        memcpy(&part, (const char *)&x + 16 * i, sizeof part);
        sums += part;
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

#define WEIGHT float
#define TYPE float32
#include "rows_times.h"
#undef WEIGHT
#undef TYPE
#define WEIGHT uint16_t
#define TYPE bfloat16
#include "rows_times.h"
#undef TYPE
#define TYPE float16
#include "rows_times.h"
#undef WEIGHT
#undef TYPE

/* The product of a matrix with many vectors, panel by panel (see kernels.h). */
#define PANEL (WIDTH / 2)             /* rows of W in a panel: two vectors of sums */
#define TOKENS (WIDTH == 64 ? 12 : 6) /* whose sums fit 32 or 16 registers */

/* y[t][r] += sum over k of panel[k][r] x[t][k] for `count` vectors x, a constant. */
static inline __attribute__((always_inline)) void SIZED(panel_tile)(
    const float *restrict panel, int n, const float *restrict x, int64_t x_apart, float *restrict y,
    int64_t y_apart, int count) {
    enum { COUNT = WIDTH / 4 };
    SIZED(Lanes) sums[TOKENS][2];
#pragma GCC unroll 12
    for (int t = 0; t < count; t++) {
        sums[t][0] = SIZED(from_float32)(y + t * y_apart);
        sums[t][1] = SIZED(from_float32)(y + t * y_apart + COUNT);
    }
    for (int k = 0; k < n; k++) {
        const SIZED(Lanes) first = SIZED(from_float32)(panel + k * PANEL);
        const SIZED(Lanes) second = SIZED(from_float32)(panel + k * PANEL + COUNT);
#pragma GCC unroll 12
        for (int t = 0; t < count; t++) {
            const float by = x[t * x_apart + k];
            sums[t][0] += first * by;
            sums[t][1] += second * by;
        }
    }
#pragma GCC unroll 12
    for (int t = 0; t < count; t++) {
        *(SIZED(Lanes) *)(y + t * y_apart) = sums[t][0];
        *(SIZED(Lanes) *)(y + t * y_apart + COUNT) = sums[t][1];
    }
}

/* panel_tile for n_tokens vectors. */
static void SIZED(panel_tiles)(const float *panel, int n, const float *x, int64_t x_apart,
                               int n_tokens, float *y, int64_t y_apart) {
    int t = 0;
    for (; t + TOKENS <= n_tokens; t += TOKENS)
        SIZED(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, TOKENS);
    for (; t + 4 <= n_tokens; t += 4)
        SIZED(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, 4);
    for (; t < n_tokens; t++)
        SIZED(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, 1);
}

/* y += W x for n_tokens vectors. */
static void SIZED(add_product)(Matrix w, const float *x, int64_t x_apart, int n_tokens, float *y,
                               int64_t y_apart) {
    float panel[DEEP * PANEL] __attribute__((aligned(64)));
    for (int in = 0; in < w.n_in; in += DEEP) {
        const int n = w.n_in - in < DEEP ? w.n_in - in : DEEP;
        for (int out = 0; out < w.n_out; out += PANEL) {
            const int n_out = w.n_out - out < PANEL ? w.n_out - out : PANEL;
            pack(w, out, in, n, PANEL, panel);
            if (n_out == PANEL)
                SIZED(panel_tiles)(panel, n, x + in, x_apart, n_tokens, y + out, y_apart);
            for (int t = 0; t < n_tokens && n_out < PANEL; t++) { /* y has no room for a full panel */
                float edge[PANEL] = {0};
                SIZED(panel_tile)(panel, n, x + t * x_apart + in, x_apart, edge, PANEL, 1);
                for (int r = 0; r < n_out; r++) y[t * y_apart + out + r] += edge[r];
            }
        }
    }
}
#undef PANEL
#undef TOKENS

#undef JOIN
#undef WITH
#undef SIZED
