/* One more token of one text through a decoder, on a CPU.
 *
 * The arithmetic of transformer/model/, fused: there, every number has a name and a place; here,
 * only what the next token needs is kept, and the weights are read once, where nn.Linear has them.
 * compiled.py describes the network and the text to it. Each thread computes some of the rows of
 * every matrix; a barrier stands wherever the next product reads what other threads wrote.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* Matrices are row-major float32; C = width, H = n_heads, D = C / H, F = hidden, V = vocabulary. */
typedef struct {
    const float *weight, *bias; /* (out, in), (out,) or NULL */
} Linear;

typedef struct {
    const float *gain, *bias; /* (C,); gain NULL where there is no norm */
} Norm;

typedef struct {
    Linear query, key, value, output;
    Norm norm;
} Attention;

typedef struct {
    Attention self, cross; /* cross: used where the network crosses */
    Linear expand, contract;
    Norm norm;
} Layer;

typedef struct {
    int n_layers, n_heads, width, hidden, vocabulary, max_len;
    int norm_first, gelu, crosses;
    float eps, scale; /* of the norms; of the token embedding */
    const float *tokens, *positions; /* (V, C), (max_len, C) */
    Norm start, end; /* after the embedding; before the head */
    Linear head;
    const Layer *layers;
} Network;

typedef struct {
    float *heads;    /* (n_layers, max_len, 3, C): queries, keys and values */
    float *crossing; /* (n_layers, max_len, C): queries of the cross-attention */
    float *stream;   /* (n_layers + 1, max_len, C): before each layer and after the last */
    float *memory;   /* (n_layers, n_memory, 2, C): what the cross-attention reads */
    float *work;     /* 4 C + F numbers */
    int n_memory;
} Text;

typedef struct {
    int index, count; /* this thread among all of them */
} Share;

typedef struct {
    int from, to;
} Range;

static Range part_of(int total, Share share) {
    return (Range){(int)((int64_t)total * share.index / share.count),
                   (int)((int64_t)total * (share.index + 1) / share.count)};
}

/* e^x for x <= 0, within 2e-7 of it; a loop of it becomes vector code, one of expf does not.
 * 2^n e^r with |r| <= ln(2) / 2; the polynomial's coefficients are those of Cephes' expf. */
static float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* x (1 + erf(x / sqrt 2)) / 2; erf by 7.1.26 of Abramowitz & Stegun, within 1.5e-7. */
static float gelu(float x) {
    float z = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    float rest = p * t * exponential(-z * z); /* 1 - erf(z) */
    return 0.5f * x * (x < 0 ? rest : 2.0f - rest);
}

/* Sixteen numbers at once, wherever they lie. */
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));

static inline float total(Lanes x) {
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += x[i];
    return sum;
}

/* y[k] = row k . x, for rows of n numbers that follow each other: memory is read in one line, as
 * prefetchers like it. Eight rows side by side took a fifth longer. */
static void rows_times(const float *restrict rows, int n_rows, const float *restrict x, int n,
                       float *restrict y) {
    for (int k = 0; k < n_rows; k++) {
        const float *row = rows + (int64_t)k * n;
        Lanes p = {0}, q = {0}, r = {0}, s = {0}; /* a product waits for the one before in its sum */
        int i = 0;
        for (; i + 64 <= n; i += 64) {
            p += *(const Lanes *)(row + i) * *(const Lanes *)(x + i);
            q += *(const Lanes *)(row + i + 16) * *(const Lanes *)(x + i + 16);
            r += *(const Lanes *)(row + i + 32) * *(const Lanes *)(x + i + 32);
            s += *(const Lanes *)(row + i + 48) * *(const Lanes *)(x + i + 48);
        }
        float sum = total(p + q + r + s);
        for (; i < n; i++) sum += row[i] * x[i];
        y[k] = sum;
    }
}

/* y = W x + bias (+ add), for some of the rows. */
static void multiply(Linear map, const float *restrict x, int n_in, Range rows,
                     const float *restrict add, float *restrict y) {
    const float *first = map.weight + (int64_t)rows.from * n_in;
    rows_times(first, rows.to - rows.from, x, n_in, y + rows.from);
    for (int k = rows.from; k < rows.to; k++)
        y[k] += (map.bias ? map.bias[k] : 0) + (add ? add[k] : 0);
}

/* y[k] = row k . x, for short rows of n_in numbers that stand `stride` numbers apart. */
static void products(const float *restrict rows, int64_t stride, int n_rows,
                     const float *restrict x, int n_in, float *restrict y) {
    int k = 0;
    for (; k + 8 <= n_rows; k += 8) {
        const float *w = rows + k * stride;
        float a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
#pragma omp simd reduction(+ : a, b, c, d, e, f, g, h)
        for (int i = 0; i < n_in; i++) {
            a += w[i] * x[i];
            b += w[i + stride] * x[i];
            c += w[i + 2 * stride] * x[i];
            d += w[i + 3 * stride] * x[i];
            e += w[i + 4 * stride] * x[i];
            f += w[i + 5 * stride] * x[i];
            g += w[i + 6 * stride] * x[i];
            h += w[i + 7 * stride] * x[i];
        }
        memcpy(y + k, (float[]){a, b, c, d, e, f, g, h}, 8 * sizeof *y);
    }
    for (; k < n_rows; k++) {
        float a = 0;
#pragma omp simd reduction(+ : a)
        for (int i = 0; i < n_in; i++) a += rows[k * stride + i] * x[i];
        y[k] = a;
    }
}

static void normalise(Norm norm, float eps, const float *restrict x, int n, float *restrict y) {
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += x[i];
    float mean = sum / n;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    float by = 1.0f / sqrtf(squares / n + eps);
#pragma omp simd
    for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * by * norm.gain[i] + norm.bias[i];
}

/* One head of one query over n keys, which stand `stride` numbers apart, as the values do. */
static void attend(const float *restrict query, const float *restrict keys,
                   const float *restrict values, int64_t stride, int n, int size,
                   float *restrict weights, float *restrict out) {
    float highest = -INFINITY, total = 0, scale = 1.0f / sqrtf((float)size);
    products(keys, stride, n, query, size, weights);
    for (int t = 0; t < n; t++) highest = weights[t] > highest ? weights[t] : highest;
#pragma omp simd reduction(+ : total)
    for (int t = 0; t < n; t++) {
        weights[t] = exponential((weights[t] - highest) * scale);
        total += weights[t];
    }
    for (int i = 0; i < size; i++) out[i] = 0;
    int t = 0;
    for (; t + 4 <= n; t += 4) {
        const float *v = values + t * stride, *w = weights + t;
#pragma omp simd
        for (int i = 0; i < size; i++)
            out[i] += w[0] * v[i] + w[1] * v[i + stride] + w[2] * v[i + 2 * stride] +
                      w[3] * v[i + 3 * stride];
    }
    for (; t < n; t++) {
#pragma omp simd
        for (int i = 0; i < size; i++) out[i] += weights[t] * values[t * stride + i];
    }
    for (int i = 0; i < size; i++) out[i] /= total;
}

/* What a sub-layer reads, and what its result is added to: with pre-norm the norm of the stream
 * and the stream, with post-norm the norm of the last sum for both. */
typedef struct {
    const float *input, *stream;
} Sides;

static Sides before(const Network *net, Norm own, Norm last, const float *sum, float *normed) {
    normalise(net->norm_first ? own : last, net->eps, sum, net->width, normed);
    return (Sides){normed, net->norm_first ? sum : normed};
}

static void read_layer(const Network *net, const Text *text, int index, int place, Share share) {
    const Layer *layer = net->layers + index;
    const int C = net->width, F = net->hidden, D = C / net->n_heads, post = !net->norm_first;
    const int longest = net->max_len > text->n_memory ? net->max_len : text->n_memory;
    const Range heads = part_of(net->n_heads, share), columns = {heads.from * D, heads.to * D};
    const Range rows = part_of(C, share), units = part_of(F, share);
    const int64_t at = (int64_t)index * net->max_len + place;
    float *x = text->stream + at * C, *next = x + (int64_t)net->max_len * C;
    float *attended = text->work, *hidden = attended + C;
    float *first = hidden + F, *second = first + C, *third = second + C; /* sums of the stream */
    float normed[C], weights[longest];

    float *row = text->heads + at * 3 * C, *past = row - (int64_t)place * 3 * C;
    Sides own = {x, x};
    if (!post) own = before(net, layer->self.norm, layer->self.norm, x, normed);
    multiply(layer->self.query, own.input, C, columns, NULL, row);
    multiply(layer->self.key, own.input, C, columns, NULL, row + C);
    multiply(layer->self.value, own.input, C, columns, NULL, row + 2 * C);
    for (int h = heads.from * D; h < heads.to * D; h += D)
        attend(row + h, past + C + h, past + 2 * C + h, 3 * C, place + 1, D, weights, attended + h);
#pragma omp barrier
    multiply(layer->self.output, attended, C, rows, own.stream, first);
#pragma omp barrier
    Norm last = layer->self.norm;
    float *sum = first;
    if (net->crosses) {
        float *asked = text->crossing + at * C;
        const float *memory = text->memory + (int64_t)index * text->n_memory * 2 * C;
        Sides cross = before(net, layer->cross.norm, last, sum, normed);
        multiply(layer->cross.query, cross.input, C, columns, NULL, asked);
        for (int h = heads.from * D; h < heads.to * D; h += D)
            attend(asked + h, memory + h, memory + C + h, 2 * C, text->n_memory, D, weights,
                   attended + h);
#pragma omp barrier
        multiply(layer->cross.output, attended, C, rows, cross.stream, second);
#pragma omp barrier
        last = layer->cross.norm;
        sum = second;
    }
    Sides forward = before(net, layer->norm, last, sum, normed);
    multiply(layer->expand, forward.input, C, units, NULL, hidden);
    if (net->gelu) {
#pragma omp simd
        for (int i = units.from; i < units.to; i++) hidden[i] = gelu(hidden[i]);
    } else {
        for (int i = units.from; i < units.to; i++) hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
    }
#pragma omp barrier
    multiply(layer->contract, hidden, F, rows, forward.stream, post ? third : next);
#pragma omp barrier
    if (post) {
        if (share.index == 0) normalise(layer->norm, net->eps, third, C, next);
#pragma omp barrier
    }
}

/* Read `token` at `place`: what it adds to the text, and the logits (V,) for the token after it.
 * What stands before `place` must have been read. */
void read_token(const Network *net, const Text *text, float *logits, int token, int place,
                int n_threads) {
    const int C = net->width;
    const float *vector = net->tokens + (int64_t)token * C;
    const float *position = net->positions + (int64_t)place * C;
    float *x = text->stream + (int64_t)place * C, embedded[C];
    for (int i = 0; i < C; i++) embedded[i] = vector[i] * net->scale + position[i];
    if (net->start.gain)
        normalise(net->start, net->eps, embedded, C, x);
    else
        memcpy(x, embedded, sizeof embedded);
#pragma omp parallel num_threads(n_threads)
    {
        Share share = {0, 1};
#ifdef _OPENMP
        share = (Share){omp_get_thread_num(), omp_get_num_threads()};
#endif
        for (int i = 0; i < net->n_layers; i++) read_layer(net, text, i, place, share);
        const float *out = x + (int64_t)net->n_layers * net->max_len * C;
        float normed[C];
        if (net->end.gain) {
            normalise(net->end, net->eps, out, C, normed);
            out = normed;
        }
        multiply(net->head, out, C, part_of(net->vocabulary, share), NULL, logits);
    }
}
