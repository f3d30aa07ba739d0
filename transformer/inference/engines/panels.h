/* The product of a matrix with many vectors, panel by panel (see kernels.h).
 *
 * Included for float32, and for pairs of bfloat16, each in the four bytes of a float: PANELS ends
 * the names, and ADDED adds the products of weights with a number or pair of x to sums. */
#define PANEL (WIDTH / 2)             /* rows of W in a panel: two vectors of sums */
#define TOKENS (WIDTH == 64 ? 12 : 6) /* whose sums fit 32 or 16 registers */

/* y[t][r] += sum over k of panel[k][r] x[t][k] for `count` vectors x, a constant. */
static inline __attribute__((always_inline)) void PANELS(panel_tile)(
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
            sums[t][0] = ADDED(sums[t][0], first, by);
            sums[t][1] = ADDED(sums[t][1], second, by);
        }
    }
#pragma GCC unroll 12
    for (int t = 0; t < count; t++) {
        *(SIZED(Lanes) *)(y + t * y_apart) = sums[t][0];
        *(SIZED(Lanes) *)(y + t * y_apart + COUNT) = sums[t][1];
    }
}

/* panel_tile for n_tokens vectors. */
static void PANELS(panel_tiles)(const float *panel, int n, const float *x, int64_t x_apart,
                               int n_tokens, float *y, int64_t y_apart) {
    int t = 0;
    for (; t + TOKENS <= n_tokens; t += TOKENS)
        PANELS(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, TOKENS);
    for (; t + 4 <= n_tokens; t += 4)
        PANELS(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, 4);
    for (; t < n_tokens; t++)
        PANELS(panel_tile)(panel, n, x + t * x_apart, x_apart, y + t * y_apart, y_apart, 1);
}

/* y += W x for n_tokens vectors. */
static void PANELS(add_product)(Matrix w, const float *x, int64_t x_apart, int n_tokens, float *y,
                               int64_t y_apart) {
    float panel[DEEP * PANEL] __attribute__((aligned(64)));
    for (int in = 0; in < w.n_in; in += DEEP) {
        const int n = w.n_in - in < DEEP ? w.n_in - in : DEEP;
        for (int out = 0; out < w.n_out; out += PANEL) {
            const int n_out = w.n_out - out < PANEL ? w.n_out - out : PANEL;
            pack(w, out, in, n, PANEL, panel);
            if (n_out == PANEL)
                PANELS(panel_tiles)(panel, n, x + in, x_apart, n_tokens, y + out, y_apart);
            for (int t = 0; t < n_tokens && n_out < PANEL; t++) { /* y has no room for a full panel */
                float edge[PANEL] = {0};
                PANELS(panel_tile)(panel, n, x + t * x_apart + in, x_apart, edge, PANEL, 1);
                for (int r = 0; r < n_out; r++) y[t * y_apart + out + r] += edge[r];
            }
        }
    }
}
#undef PANEL
#undef TOKENS
