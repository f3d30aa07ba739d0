/* Products of rows of weights of a TYPE with vectors, WIDTH bytes at a time (see lanes.h). */
#define FROM SIZED(WITH(from, TYPE))
#define IN(name) SIZED(WITH(name, TYPE))
#define KERNEL_NAME(streams, ahead) SIZED(WITH(WITH(TYPE, streams), ahead))
#define SIDE (WIDTH == 64 ? 4 : 2) /* rows whose sums with 4 vectors fit 32 or 16 registers */

/* The product of the last n numbers of a row, fewer than a vector holds. */
static __attribute__((noinline)) float IN(rest)(const WEIGHT *row, const float *x, int n) {
    WEIGHT some[WIDTH / 4] = {0};
    float by[WIDTH / 4] = {0};
    memcpy(some, row, n * sizeof *row);
    memcpy(by, x, n * sizeof *x);
    return SIZED(total)(FROM(some) * SIZED(from_float32)(by));
}

/* y[r] = row r . x for `streams` rows of n weights; row_apart, y_apart: strides. Prefetches `ahead`
 * bytes ahead if it is not 0. streams, ahead: constants. */
static inline __attribute__((always_inline)) void IN(in_streams)(
    const WEIGHT *restrict rows, int64_t row_apart, const float *restrict x, int n,
    float *restrict y, int64_t y_apart, int streams, int ahead) {
    enum { COUNT = WIDTH / 4 };
    const int parts = 4 / streams; /* of a row: a sum waits for its last product, so there are four */
    SIZED(Lanes) sums[4] = {{0}};
    int i = 0;
    for (; i + parts * COUNT <= n; i += parts * COUNT) {
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++) {
            SIZED(Lanes) by = SIZED(from_float32)(x + i + p * COUNT);
#pragma GCC unroll 4
            for (int r = 0; r < streams; r++) {
                const WEIGHT *at = rows + r * row_apart + i + p * COUNT;
                if (ahead && p * COUNT * sizeof *at % 64 == 0)
                    __builtin_prefetch((const char *)at + ahead);
                sums[r * parts + p] += FROM(at) * by;
            }
        }
    }
    for (; i + COUNT <= n; i += COUNT)
        for (int r = 0; r < streams; r++)
            sums[r * parts] += FROM(rows + r * row_apart + i) * SIZED(from_float32)(x + i);
    for (int r = 0; r < streams; r++) {
        SIZED(Lanes) sum = sums[r * parts];
        for (int p = 1; p < parts; p++) sum += sums[r * parts + p];
        y[r * y_apart] = SIZED(total)(sum);
        if (i < n) y[r * y_apart] += IN(rest)(rows + r * row_apart + i, x + i, n - i);
    }
}

/* y[k] = row k . x for contiguous rows of n weights. */
static void KERNEL_NAME(1, 0)(const void *weights, int n_rows, const float *x, int n, float *y) {
    const WEIGHT *row = weights;
    for (int k = 0; k < n_rows; k++, row += n) IN(in_streams)(row, 0, x, n, y + k, 0, 1, 0);
}

/* y[k] = row k . x, four parts of the rows at once: memory reads four streams faster than one. */
static inline __attribute__((always_inline)) void IN(in_parts)(const WEIGHT *weights, int n_rows,
                                                               const float *x, int n, float *y,
                                                               int ahead) {
    const int each = n_rows / 4, rest = n_rows - 4 * each;
    const int64_t part = (int64_t)each * n;
    for (int k = 0; k < each; k++)
        IN(in_streams)(weights + (int64_t)k * n, part, x, n, y + k, each, 4, ahead);
    KERNEL_NAME(1, 0)(weights + 4 * part, rest, x, n, y + 4 * each);
}

static void KERNEL_NAME(4, 0)(const void *weights, int n_rows, const float *x, int n, float *y) {
    IN(in_parts)(weights, n_rows, x, n, y, 0);
}

static void KERNEL_NAME(4, 1024)(const void *weights, int n_rows, const float *x, int n,
                                 float *y) {
    IN(in_parts)(weights, n_rows, x, n, y, 1024);
}

/* y[t][r] = row r . x[t] for `side` contiguous rows and `count` vectors, both constants; x_apart,
 * y_apart: strides in numbers. */
static inline __attribute__((always_inline)) void IN(tile)(const WEIGHT *restrict rows,
                                                           const float *restrict x, int64_t x_apart,
                                                           int n, float *restrict y,
                                                           int64_t y_apart, int side, int count) {
    enum { COUNT = WIDTH / 4 };
    SIZED(Lanes) sums[16] = {{0}};
    int i = 0;
    for (; i + COUNT <= n; i += COUNT) {
        SIZED(Lanes) by[4];
#pragma GCC unroll 4
        for (int r = 0; r < side; r++) by[r] = FROM(rows + (int64_t)r * n + i);
#pragma GCC unroll 4
        for (int t = 0; t < count; t++) {
            SIZED(Lanes) of = SIZED(from_float32)(x + t * x_apart + i);
#pragma GCC unroll 4
            for (int r = 0; r < side; r++) sums[t * side + r] += by[r] * of;
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < count; t++) {
#pragma GCC unroll 4
        for (int r = 0; r < side; r++) {
            float sum = SIZED(total)(sums[t * side + r]);
            if (i < n) sum += IN(rest)(rows + (int64_t)r * n + i, x + t * x_apart + i, n - i);
            y[t * y_apart + r] = sum;
        }
    }
}

/* tile for all of n_tokens vectors. */
static inline __attribute__((always_inline)) void IN(tiles)(const WEIGHT *rows, const float *x,
                                                            int64_t x_apart, int n_tokens, int n,
                                                            float *y, int64_t y_apart, int side) {
    int t = 0;
    for (; t + 4 <= n_tokens; t += 4)
        IN(tile)(rows, x + t * x_apart, x_apart, n, y + t * y_apart, y_apart, side, 4);
    for (; t < n_tokens; t++)
        IN(tile)(rows, x + t * x_apart, x_apart, n, y + t * y_apart, y_apart, side, 1);
}

static void SIZED(WITH(several, TYPE))(const void *weights, int n_rows, const float *x,
                                       int64_t x_apart, int n_tokens, int n, float *y,
                                       int64_t y_apart) {
    const WEIGHT *rows = weights;
    int k = 0;
    for (; k + SIDE <= n_rows; k += SIDE, rows += SIDE * n)
        IN(tiles)(rows, x, x_apart, n_tokens, n, y + k, y_apart, SIDE);
    for (; k < n_rows; k++, rows += n)
        IN(tiles)(rows, x, x_apart, n_tokens, n, y + k, y_apart, 1);
}
#undef FROM
#undef IN
#undef KERNEL_NAME
#undef SIDE
