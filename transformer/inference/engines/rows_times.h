/* Products of rows of weights of a TYPE with vectors, WIDTH bytes at a time (see lanes.h). */
#define FROM SIZED(WITH(from, TYPE))
#define IN(name) SIZED(WITH(name, TYPE))
#define KERNEL_NAME(side, ahead) SIZED(WITH(WITH(TYPE, side), ahead))
#define SIDE (WIDTH == 64 ? 4 : 2) /* of 4 vectors' sums: a CPU has 32 wide registers or 16 */

/* What the last n numbers of a row add, fewer than a vector holds. */
static __attribute__((noinline)) float IN(rest)(const WEIGHT *row, const float *x, int n) {
    WEIGHT some[WIDTH / 4] = {0};
    float by[WIDTH / 4] = {0};
    memcpy(some, row, n * sizeof *row);
    memcpy(by, x, n * sizeof *x);
    return SIZED(total)(FROM(some) * SIZED(from_float32)(by));
}

/* y[k] = row k . x for `side` rows of n weights that follow each other, read side by side; `ahead`
 * bytes beyond the present ones are asked for, where it is not 0. Both are constants. */
static inline __attribute__((always_inline)) void IN(side_by_side)(
    const WEIGHT *restrict rows, const float *restrict x, int n, float *restrict y, int side,
    int ahead) {
    enum { COUNT = WIDTH / 4 };
    const int parts = 4 / side; /* of a row: a sum waits for its last product, so there are four */
    SIZED(Lanes) sums[4] = {{0}};
    int i = 0;
    for (; i + parts * COUNT <= n; i += parts * COUNT) {
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++) {
            SIZED(Lanes) by = SIZED(from_float32)(x + i + p * COUNT);
#pragma GCC unroll 4
            for (int r = 0; r < side; r++) {
                const WEIGHT *at = rows + (int64_t)r * n + i + p * COUNT;
                if (ahead && p * COUNT * sizeof *at % 64 == 0)
                    __builtin_prefetch((const char *)at + ahead);
                sums[r * parts + p] += FROM(at) * by;
            }
        }
    }
    for (; i + COUNT <= n; i += COUNT)
        for (int r = 0; r < side; r++)
            sums[r * parts] += FROM(rows + (int64_t)r * n + i) * SIZED(from_float32)(x + i);
    for (int r = 0; r < side; r++) {
        SIZED(Lanes) sum = sums[r * parts];
        for (int p = 1; p < parts; p++) sum += sums[r * parts + p];
        y[r] = SIZED(total)(sum);
        if (i < n) y[r] += IN(rest)(rows + (int64_t)r * n + i, x + i, n - i);
    }
}

static void KERNEL_NAME(1, 0)(const void *weights, int n_rows, const float *x, int n, float *y) {
    const WEIGHT *row = weights;
    for (int k = 0; k < n_rows; k++, row += n) IN(side_by_side)(row, x, n, y + k, 1, 0);
}

static void KERNEL_NAME(1, 1024)(const void *weights, int n_rows, const float *x, int n,
                                 float *y) {
    const WEIGHT *row = weights;
    for (int k = 0; k < n_rows; k++, row += n) IN(side_by_side)(row, x, n, y + k, 1, 1024);
}

static void KERNEL_NAME(4, 0)(const void *weights, int n_rows, const float *x, int n, float *y) {
    const WEIGHT *rows = weights;
    int k = 0;
    for (; k + 4 <= n_rows; k += 4, rows += 4 * n) IN(side_by_side)(rows, x, n, y + k, 4, 0);
    KERNEL_NAME(1, 0)(rows, n_rows - k, x, n, y + k);
}

/* The same for `side` rows and `count` vectors that are x_apart numbers from one another; what is
 * made of them is y_apart numbers apart. side, count: constants. */
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

/* `side` rows with all of n_tokens vectors. */
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
