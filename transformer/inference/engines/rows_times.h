/* Products of rows of weights of a TYPE with a vector, WIDTH bytes at a time (see lanes.h). */
#define FROM SIZED(WITH(from, TYPE))
#define IN(name) SIZED(WITH(name, TYPE))
#define KERNEL_NAME(side, ahead) SIZED(WITH(WITH(TYPE, side), ahead))

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
#undef FROM
#undef IN
#undef KERNEL_NAME
