/* Products of matrices with vectors: nearly all of the engine's time. kernel.js calls them.
 *
 * Matrices keep the type they are stored in, float32, float16 or bfloat16: half the bytes are read in
 * less time. Products are float32. Built by
 *
 *     clang --target=wasm32 -msimd128 -O3 -fno-builtin -nostdlib -Wl,--no-entry \
 *         -Wl,--export=__heap_base -Wl,--strip-all -Wl,--initial-memory=131072 \
 *         -o kernel.wasm kernel.c
 */
#include <stdint.h>
#include <wasm_simd128.h>

#define INLINE static inline __attribute__((always_inline))
#define EXPORT(name) __attribute__((export_name(#name)))

enum { FLOAT32, FLOAT16, BFLOAT16 };

INLINE uint32_t size_of(int type) { return type == FLOAT32 ? 4 : 2; }

/* Four numbers. A float16 has the bits of a float32 whose exponent is 112 less. */
INLINE v128_t four(const char *at, int type) {
    if (type == FLOAT32) return wasm_v128_load(at);
    if (type == BFLOAT16) return wasm_i32x4_shl(wasm_u32x4_load16x4(at), 16);
    const v128_t bits = wasm_i32x4_shl(wasm_i32x4_load16x4(at), 13); /* the sign, four times */
    return wasm_f32x4_mul(wasm_v128_and(bits, wasm_i32x4_const_splat(0x8fffffff)),
                          wasm_f32x4_const_splat(0x1p112f));
}

INLINE float total(v128_t x) {
    return (wasm_f32x4_extract_lane(x, 0) + wasm_f32x4_extract_lane(x, 2)) +
           (wasm_f32x4_extract_lane(x, 1) + wasm_f32x4_extract_lane(x, 3));
}

INLINE v128_t plus_product(v128_t sum, v128_t a, v128_t b) {
    return wasm_f32x4_add(sum, wasm_f32x4_mul(a, b));
}

/* One row of W times a vector. Rows one after the other: memory is read in order. */
INLINE float row_times(const char *w, int type, int n_in, const float *x) {
    const uint32_t size = size_of(type);
    v128_t sums[4] = {};
    int i = 0;
    for (; i + 16 <= n_in; i += 16)
#pragma clang loop unroll(full)
        for (int u = 0; u < 4; u++)
            sums[u] = plus_product(sums[u], four(w + (i + 4 * u) * size, type),
                                   wasm_v128_load(x + i + 4 * u));
    for (; i < n_in; i += 4)
        sums[0] = plus_product(sums[0], four(w + i * size, type), wasm_v128_load(x + i));
    return total(wasm_f32x4_add(wasm_f32x4_add(sums[0], sums[2]), wasm_f32x4_add(sums[1], sums[3])));
}

INLINE void rows_times(const char *w, int type, const float *bias, int n_out, int n_in,
                       const float *x, float *y) {
    for (int row = 0; row < n_out; row++)
        y[row] = row_times(w + row * n_in * size_of(type), type, n_in, x) + (bias ? bias[row] : 0);
}

/* Four rows of W times three vectors: each number that is loaded is used several times. */
INLINE void tile(const float *w, const float *bias, int n_out, int n_in, const float *x, float *y) {
    v128_t sums[12];
#pragma clang loop unroll(full)
    for (int k = 0; k < 12; k++) sums[k] = wasm_i32x4_const_splat(0);
    for (int i = 0; i < n_in; i += 4) {
        v128_t by[4];
#pragma clang loop unroll(full)
        for (int r = 0; r < 4; r++) by[r] = wasm_v128_load(w + r * n_in + i);
#pragma clang loop unroll(full)
        for (int t = 0; t < 3; t++) {
            const v128_t numbers = wasm_v128_load(x + t * n_in + i);
#pragma clang loop unroll(full)
            for (int r = 0; r < 4; r++)
                sums[4 * t + r] = plus_product(sums[4 * t + r], by[r], numbers);
        }
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < 3; t++)
#pragma clang loop unroll(full)
        for (int r = 0; r < 4; r++)
            y[t * n_out + r] = total(sums[4 * t + r]) + (bias ? bias[r] : 0);
}

/* `count` numbers as float32; a multiple of 4 is written. */
EXPORT(widen) void widen(const char *from, int type, int count, float *to) {
    for (int i = 0; i < count; i += 4) wasm_v128_store(to + i, four(from + i * size_of(type), type));
}

/* y = W x + bias for n vectors. W: (n_out, n_in) of a type; n_in is a multiple of 4. bias: (n_out,)
 * or NULL. room: 4 n_in numbers. */
EXPORT(multiply) void multiply(const char *w, int type, const float *bias, int n_out, int n_in,
                               const float *x, int n, float *y, float *room) {
    if (n == 1 && type == FLOAT32) rows_times(w, FLOAT32, bias, n_out, n_in, x, y);
    else if (n == 1 && type == FLOAT16) rows_times(w, FLOAT16, bias, n_out, n_in, x, y);
    else if (n == 1) rows_times(w, BFLOAT16, bias, n_out, n_in, x, y);
    else
        for (int row = 0; row < n_out; row += 4) { /* widened once for all vectors */
            const int count = n_out - row < 4 ? n_out - row : 4;
            const float *shift = bias ? bias + row : 0;
            float *to = y + row;
            widen(w + row * n_in * size_of(type), type, count * n_in, room);
            int t = 0;
            if (count == 4)
                for (; t + 3 <= n; t += 3)
                    tile(room, shift, n_out, n_in, x + t * n_in, to + t * n_out);
            for (; t < n; t++)
                rows_times((const char *)room, FLOAT32, shift, count, n_in, x + t * n_in,
                           to + t * n_out);
        }
}
