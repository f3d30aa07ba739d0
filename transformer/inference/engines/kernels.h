/* Matrix times vector, most of a step's time, in each variant that may be the fastest on a CPU.
 *
 * c_compiler.py measures once per machine which one is: it depends on the registers, the memory and
 * the compiler. */
#include <stdint.h>
#include <string.h>
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AVX512BF16__)
#define HAS_PAIRS 1
#else
#define HAS_PAIRS 0
#endif

/* Panels: some rows of weights transposed, so that the weights of one number of x are contiguous.
 * For many vectors x, this costs less than it saves. */
#define DEEP 768 /* columns of W in a panel at most: 48 or 96 KB, for a CPU's second cache */

enum { FLOAT32, BFLOAT16, FLOAT16, N_TYPES }; /* in the order of c_compiler.py's TYPES */

/* A matrix W (n_out, n_in) of a type. out_apart, in_apart: strides in numbers. */
typedef struct {
    const void *at;
    int type, n_out, n_in;
    int64_t out_apart, in_apart;
} Matrix;

static const char *number_of(Matrix w, int64_t out, int64_t in) {
    const int64_t number = out * w.out_apart + in * w.in_apart;
    return (const char *)w.at + number * (w.type == FLOAT32 ? 4 : 2);
}

/* Convert n numbers of a type to float32. */
static void widen(int type, const void *from, int n, float *to) {
    const uint16_t *halves = from;
    if (type == FLOAT32) memcpy(to, from, n * sizeof *to);
    for (int i = 0; i < n && type != FLOAT32; i++) {
        uint32_t bits = (uint32_t)halves[i] << 16;
        if (type == FLOAT16) bits = (halves[i] & 0x7fffu) << 13;
        memcpy(to + i, &bits, sizeof bits);
        if (type == FLOAT16) to[i] *= halves[i] & 0x8000 ? -0x1p112f : 0x1p112f;
    }
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int FourPlaces __attribute__((vector_size(16)));
#ifdef __clang__
#define CHOSEN __builtin_shufflevector
#else
#define CHOSEN(a, b, ...) __builtin_shuffle(a, b, (FourPlaces){__VA_ARGS__})
#endif

/* to[k * to_apart + r] = from[r * apart + k] for four r and four k. */
static inline void turn_four(const float *from, int64_t apart, float *to, int64_t to_apart) {
    const Four a = *(const Four *)from, b = *(const Four *)(from + apart);
    const Four c = *(const Four *)(from + 2 * apart), d = *(const Four *)(from + 3 * apart);
    const Four ab = CHOSEN(a, b, 0, 4, 1, 5), cd = CHOSEN(c, d, 0, 4, 1, 5);
    const Four later_ab = CHOSEN(a, b, 2, 6, 3, 7), later_cd = CHOSEN(c, d, 2, 6, 3, 7);
    *(Four *)to = CHOSEN(ab, cd, 0, 1, 4, 5);
    *(Four *)(to + to_apart) = CHOSEN(ab, cd, 2, 3, 6, 7);
    *(Four *)(to + 2 * to_apart) = CHOSEN(later_ab, later_cd, 0, 1, 4, 5);
    *(Four *)(to + 3 * to_apart) = CHOSEN(later_ab, later_cd, 2, 3, 6, 7);
}

/* panel[k * wide + r] = W[out + r][in + k] for k < n_in and r < wide, a multiple of 4; 0 for rows
 * beyond the end of W. */
static void pack(Matrix w, int out, int in, int n_in, int wide, float *panel) {
    const int left = w.n_out - out, n_out = left < wide ? left : wide;
    if (w.in_apart != 1) { /* contiguous already */
        for (int k = 0; k < n_in; k++) {
            widen(w.type, number_of(w, out, in + k), n_out, panel + k * wide);
            memset(panel + k * wide + n_out, 0, (wide - n_out) * sizeof *panel);
        }
        return;
    }
    for (int r = 0; r < wide; r += 4) {
        const float *rows = (const float *)number_of(w, out + r, in);
        int64_t apart = w.out_apart;
        float some[4][DEEP];
        if (w.type != FLOAT32 || r + 4 > n_out) {
            for (int i = 0; i < 4; i++) {
                if (r + i < n_out) widen(w.type, number_of(w, out + r + i, in), n_in, some[i]);
                else memset(some[i], 0, sizeof *some);
            }
            rows = some[0], apart = DEEP;
        }
        int k = 0;
        for (; k + 4 <= n_in; k += 4) turn_four(rows + k, apart, panel + k * wide + r, wide);
        for (; k < n_in; k++)
            for (int i = 0; i < 4; i++) panel[k * wide + r + i] = rows[i * apart + k];
    }
}

#ifdef __AVX512F__
#define WIDTH 64
#include "lanes.h"
#undef WIDTH
#endif
#ifdef __AVX__
#define WIDTH 32
#else /* SSE, NEON */
#define WIDTH 16
#endif
#include "lanes.h"
#undef WIDTH

#if HAS_PAIRS
/* to[k]: x[2 k] and x[2 k + 1] rounded to bfloat16, for an even number n of numbers. */
static void to_pairs(const float *x, int n, float *to) {
    for (int i = 0; i < n; i += 32) {
        const int left = n - i < 32 ? n - i : 32, later = left > 16 ? left - 16 : 0;
        const __mmask16 some = left < 16 ? (1 << left) - 1 : 0xffff, more = (1 << later) - 1;
        const __m512 first = _mm512_maskz_loadu_ps(some, x + i);
        const __m512 second = _mm512_maskz_loadu_ps(more, x + i + 16);
        const __mmask16 pairs = (1 << left / 2) - 1;
        _mm512_mask_storeu_ps(to + i / 2, pairs, (__m512)_mm512_cvtne2ps_pbh(second, first));
    }
}

/* y += W x for a W of bfloat16 with an even number of contiguous columns, and vectors x of pairs;
 * x_apart: in pairs. An instruction adds twice as many products as for float32. */
static void add_rounded(Matrix w, const float *x, int64_t x_apart, int n_tokens, float *y,
                        int64_t y_apart) {
    const Matrix pairs = {w.at, FLOAT32, w.n_out, w.n_in / 2, w.out_apart / 2, 1};
    add_product_pairs(pairs, x, x_apart, n_tokens, y, y_apart);
}
#endif

/* y[k] = row k . x, for n_rows contiguous rows of n weights. */
typedef void RowsTimes(const void *rows, int n_rows, const float *x, int n, float *y);

/* The product for n_tokens vectors x; x_apart, y_apart: strides of x and y in numbers. */
typedef void RowsTimesSeveral(const void *rows, int n_rows, const float *x, int64_t x_apart,
                              int n_tokens, int n, float *y, int64_t y_apart);

/* y += W x for n_tokens vectors x; x_apart, y_apart: strides of x and y in numbers. */
typedef void AddProduct(Matrix w, const float *x, int64_t x_apart, int n_tokens, float *y,
                        int64_t y_apart);

typedef struct {
    RowsTimes *of[N_TYPES];
    RowsTimesSeveral *several[N_TYPES]; /* depends on the width only, as add_product */
    AddProduct *add_product;
    int width, streams, ahead; /* bytes of a vector; rows read at once; bytes prefetched */
} Kernel;

#define KERNEL(width, streams, ahead)                                                              \
    {{float32_##streams##_##ahead##_##width, bfloat16_##streams##_##ahead##_##width,               \
      float16_##streams##_##ahead##_##width},                                                      \
     {several_float32_##width, several_bfloat16_##width, several_float16_##width},                 \
     add_product_##width, width, streams, ahead}
#define KERNELS(width) KERNEL(width, 4, 0), KERNEL(width, 4, 1024), KERNEL(width, 1, 0)

/* The first has the widest registers, which are best for several vectors. */
static const Kernel KERNELS_HERE[] = {
#ifdef __AVX512F__
    KERNELS(64),
#endif
#ifdef __AVX__
    KERNELS(32),
#else
    KERNELS(16),
#endif
};
enum { N_KERNELS = sizeof KERNELS_HERE / sizeof *KERNELS_HERE };
