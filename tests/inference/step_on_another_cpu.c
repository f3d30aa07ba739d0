/* What `step.c` computes on the CPU that this is compiled for: one number a line, of inputs that are
 * the same everywhere. First every kernel, for weights of each type; then the logits of a small
 * decoder, read token by token and side by side, with one thread and with two. */
#include "step.c"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 2, HEADS_HERE = 3, KEY_HEADS = 1, SIZE = 24, C = 72, F = 150, V = 43, LONG = 64 };

static uint32_t state;

/* Uniform in [-1, 1), and a bfloat16 or float16 without rounding: seven bits of fraction. */
static float next(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 24) / 128.0f - 1.0f;
}

static float *floats(int64_t n, float scale, float shift) {
    float *made = malloc(n * sizeof *made);
    for (int64_t i = 0; i < n; i++) made[i] = next() * scale + shift;
    return made;
}

static uint16_t half_of(float x, int type) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == BFLOAT16) return bits >> 16;
    const int exponent = (int)(bits >> 23 & 0xff) - 112;
    return exponent <= 0 ? 0 : (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff);
}

static const void *weights(int64_t n, int type) {
    float *made = floats(n, 0.25f, 0);
    if (type == FLOAT32) return made;
    uint16_t *halves = malloc(n * sizeof *halves);
    for (int64_t i = 0; i < n; i++) halves[i] = half_of(made[i], type);
    free(made);
    return halves;
}

static void multiply_all(void) {
    const int sizes[] = {1, 7, 16, 31, 64, 129, 200, 770}, counts[] = {1, 2, 5, 33};
    for (int type = 0; type < N_TYPES; type++)
        for (int s = 0; s < 8; s++)
            for (int t = 0; t < 4; t++)
                for (int kernel = 0; kernel < kernel_facts(-1, NULL); kernel++) {
                    state = 7;
                    const void *rows = weights(11 * sizes[s], type);
                    const float *x = floats((int64_t)counts[t] * sizes[s], 1, 0);
                    float *y = floats(11 * counts[t], 1, 0);
                    multiply_rows(kernel, type, rows, 11, x, counts[t], sizes[s], y);
                    if (kernel == 0)
                        for (int i = 0; i < 11 * counts[t]; i++) printf("%.9g\n", y[i]);
                    else { /* all kernels say what the first does */
                        float *first = floats(11 * counts[t], 1, 0);
                        multiply_rows(0, type, rows, 11, x, counts[t], sizes[s], first);
                        for (int i = 0; i < 11 * counts[t]; i++)
                            if (fabsf(first[i] - y[i]) > 1e-4f) exit(1);
                    }
                }
}

static Linear linear(int out, int in, int type) {
    return (Linear){weights((int64_t)out * in, type), floats(out, 0.1f, 0), type};
}

static Norm norm(int n) { return (Norm){floats(n, 0.2f, 1), floats(n, 0.1f, 0)}; }

static void read_all(int type, int n_threads) {
    state = 11;
    Layer layers[LAYERS] = {0};
    for (int i = 0; i < LAYERS; i++) {
        layers[i].self = (Attention){
            .query = linear(HEADS_HERE * SIZE, C, type),
            .key = linear(KEY_HEADS * SIZE, C, type),
            .value = linear(KEY_HEADS * SIZE, C, type),
            .output = linear(C, HEADS_HERE * SIZE, type),
            .norm = norm(C),
        };
        layers[i].expand = linear(F, C, type);
        layers[i].contract = linear(C, F, type);
        layers[i].norm = norm(C);
        layers[i].window = LONG - 40 * i;
        if (i) layers[i].after = norm(C);
    }
    const Network net = {
        .n_layers = LAYERS, .n_heads = HEADS_HERE, .n_key_heads = KEY_HEADS, .head_size = SIZE,
        .width = C, .hidden = F, .vocabulary = V, .max_len = LONG,
        .norm_first = 1, .activation = GELU, .eps = 1e-5f, .scale = 1, .residual_scale = 1,
        .score_scale = 0.2f, .score_cap = 4, .logit_scale = 0.5f, .logit_cap = 9,
        .tokens = {weights(V * C, type), NULL, type}, .positions = floats(LONG * C, 0.5f, 0),
        .end = norm(C), .head = linear(V, C, type), .layers = layers,
    }; /* clang-format off */
    const int each = HEADS_HERE + 2 * KEY_HEADS;
    Text text = {
        floats((int64_t)LAYERS * LONG * each * SIZE, 0, 0), NULL,
        floats((int64_t)(LAYERS + 1) * LONG * C, 0, 0), NULL,
        floats(work_size(&net, LONG, LONG, n_threads), 0, 0), 0, LONG,
    };
    int tokens[LONG];
    float logits[V];
    for (int i = 0; i < LONG; i++) tokens[i] = i * i % V;
    const int parts[] = {1, 1, 1, 9, 40, 1}; /* one, some and many at once */
    for (int place = 0, p = 0; p < 6; place += parts[p++]) {
        read_tokens(&net, &text, logits, tokens + place, parts[p], place, 1, n_threads);
        for (int i = 0; i < V; i++) printf("%.9g\n", logits[i]);
    }
}

int main(void) {
    multiply_all();
    for (int type = 0; type < N_TYPES; type++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) read_all(type, n_threads);
    return 0;
}
