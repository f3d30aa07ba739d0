/* Products of matrices with vectors: nearly all of the engine's time. kernel.js calls them.
 *
 * Matrices keep the type they are stored in, float32, float16 or bfloat16; products are float32. Built by
 *
 *     clang --target=wasm32 -msimd128 -O3 -nostdlib -Wl,--no-entry -Wl,--export=__heap_base \
 *         -Wl,--strip-all -Wl,--initial-memory=131072 -o kernel.wasm kernel.c
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

/* Rows of W times vectors, both constants: each number that is loaded is used several times. */
INLINE void tile(const char *w, int type, const float *bias, int n_out, int n_in, const float *x,
                 float *y, const int rows, const int vectors) {
    const uint32_t apart = n_in * size_of(type);
    v128_t sums[16] = {};
    for (int i = 0; i < n_in; i += 4) {
        v128_t by[4];
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++) by[r] = four(w + r * apart + i * size_of(type), type);
#pragma clang loop unroll(full)
        for (int t = 0; t < vectors; t++) {
            const v128_t numbers = wasm_v128_load(x + t * n_in + i);
#pragma clang loop unroll(full)
            for (int r = 0; r < rows; r++)
                sums[4 * t + r] = wasm_f32x4_add(sums[4 * t + r], wasm_f32x4_mul(by[r], numbers));
        }
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < vectors; t++)
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; r++)
            y[t * n_out + r] = total(sums[4 * t + r]) + (bias ? bias[r] : 0);
}

/* Four rows, or the last few, of W times n vectors. */
INLINE void strip(const char *w, int type, const float *bias, int n_out, int n_in, int count,
                  const float *x, int n, float *y) {
    int t = 0;
    if (count < 4)
        for (; t < n; t++)
            for (int r = 0; r < count; r++)
                tile(w + r * n_in * size_of(type), type, bias ? bias + r : 0, n_out, n_in,
                     x + t * n_in, y + t * n_out + r, 1, 1);
    if (type == FLOAT32)
        for (; t + 3 <= n; t += 3)
            tile(w, type, bias, n_out, n_in, x + t * n_in, y + t * n_out, 4, 3);
    for (; t < n; t++)
        tile(w, type, bias, n_out, n_in, x + t * n_in, y + t * n_out, 4, 1);
}

/* `count` numbers as float32; a multiple of 4 is written. */
EXPORT(widen) void widen(const char *from, int type, int count, float *to) {
    for (int i = 0; i < count; i += 4) wasm_v128_store(to + i, four(from + i * size_of(type), type));
}

/* y = W x + bias for n vectors. W: (n_out, n_in) of a type; n_in is a multiple of 4. bias: (n_out,)
 * or NULL. room: 4 n_in numbers. */
EXPORT(multiply) void multiply(const char *w, int type, const float *bias, int n_out, int n_in,
                               const float *x, int n, float *y, float *room) {
    for (int row = 0; row < n_out; row += 4) {
        const int count = n_out - row < 4 ? n_out - row : 4;
        const float *shift = bias ? bias + row : 0;
        const char *rows = w + row * n_in * size_of(type);
        if (n == 1 && type == FLOAT16)
            strip(rows, FLOAT16, shift, n_out, n_in, count, x, 1, y + row);
        else if (n == 1 && type == BFLOAT16)
            strip(rows, BFLOAT16, shift, n_out, n_in, count, x, 1, y + row);
        else {
            if (type != FLOAT32) { /* widened once for all vectors */
                widen(rows, type, count * n_in, room);
                rows = (const char *)room;
            }
            strip(rows, FLOAT32, shift, n_out, n_in, count, x, n, y + row);
        }
    }
}
