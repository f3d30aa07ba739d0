/* The product that most of a step is made of, in each way that may be the quickest on a CPU.
 *
 * Which one is, each machine is asked once (see kernels.py): that depends on its registers, on its
 * memory and on the compiler. */
#include <stdint.h>
#include <string.h>
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "panels.h"

typedef float Four __attribute__((vector_size(16)));

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

/* y[k] = row k . x, for n_rows rows of n weights that follow each other. */
typedef void RowsTimes(const void *rows, int n_rows, const float *x, int n, float *y);

/* The same for n_tokens vectors x, x_apart numbers from one another, into as many y. */
typedef void RowsTimesSeveral(const void *rows, int n_rows, const float *x, int64_t x_apart,
                              int n_tokens, int n, float *y, int64_t y_apart);

/* y += W x for n_tokens vectors x that are x_apart numbers from one another, as the y y_apart. */
typedef void AddProduct(Matrix w, const float *x, int64_t x_apart, int n_tokens, float *y,
                        int64_t y_apart);

typedef struct {
    RowsTimes *of[N_TYPES];
    RowsTimesSeveral *several[N_TYPES]; /* the same for all of a width, and add_product */
    AddProduct *add_product;
    int width, streams, ahead; /* bytes of a vector; rows read at once; bytes asked for ahead */
} Kernel;

#define KERNEL(width, streams, ahead)                                                              \
    {{float32_##streams##_##ahead##_##width, bfloat16_##streams##_##ahead##_##width,               \
      float16_##streams##_##ahead##_##width},                                                      \
     {several_float32_##width, several_bfloat16_##width, several_float16_##width},                 \
     add_product_##width, width, streams, ahead}
#define KERNELS(width) KERNEL(width, 4, 0), KERNEL(width, 4, 1024), KERNEL(width, 1, 0)

/* The first has the widest registers: the best where several vectors are multiplied by what is
 * read. */
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
