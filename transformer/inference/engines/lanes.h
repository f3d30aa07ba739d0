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

#define PANELS(name) SIZED(name)
#define ADDED(sum, weights, by) ((sum) + (weights) * (by))
#include "panels.h"
#undef PANELS
#undef ADDED
#if WIDTH == 64 && defined(__AVX512BF16__)
#define PANELS(name) JOIN(name, pairs)
#define ADDED(sum, weights, by)                                                                    \
    (Lanes_64) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(weights), (__m512bh)_mm512_set1_ps(by))
#include "panels.h"
#undef PANELS
#undef ADDED
#endif

#undef JOIN
#undef WITH
#undef SIZED
