/* Attention of new tokens: over their own past, and over an encoder's memory. */
#include "network.h"

enum { HEADS = 4, ROWS = 8 }; /* read together */

/* y[k] = row k . x, for short rows of n_in numbers with this stride. */
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

/* Prefetch short rows with this stride. */
static void prefetch(const float *rows, int64_t stride, int n_rows, int n) {
    for (int t = 0; t < n_rows; t++)
        for (int i = 0; i < n; i += 16) __builtin_prefetch(rows + t * stride + i);
}

/* Replace n products of a head's query with keys by the exponentials of their scores; returns the
 * sum, which turns them into weights. bias: added to the score of the last key, the one before ...,
 * or NULL. */
static float exponentials(const Network *net, float *restrict scores, int n, const float *bias) {
    float scale = net->score_scale;
    if (bias || net->score_cap) {
        for (int t = 0; t < n; t++) scores[t] = scores[t] * scale + (bias ? bias[n - 1 - t] : 0);
        if (net->score_cap) soft_cap(scores, n, net->score_cap);
        scale = 1;
    }
    float highest = -INFINITY, total = 0;
    for (int t = 0; t < n; t++) highest = scores[t] > highest ? scores[t] : highest;
#pragma omp simd reduction(+ : total)
    for (int t = 0; t < n; t++) {
        scores[t] = exponential((scores[t] - highest) * scale);
        total += scores[t];
    }
    return total;
}

/* out += the weighted sum of rows of values, for short rows of n_in numbers. */
static void add_weighed(const float *restrict values, int64_t stride, int n_rows,
                        const float *restrict weights, int n_in, float *restrict out) {
    int t = 0;
    for (; t + 4 <= n_rows; t += 4) {
        const float *v = values + t * stride, *w = weights + t;
#pragma omp simd
        for (int i = 0; i < n_in; i++)
            out[i] += w[0] * v[i] + w[1] * v[i + stride] + w[2] * v[i + 2 * stride] +
                      w[3] * v[i + 3 * stride];
    }
    for (; t < n_rows; t++) {
#pragma omp simd
        for (int i = 0; i < n_in; i++) out[i] += weights[t] * values[t * stride + i];
    }
}

static const float *bias_of(const Network *net, const float *bias, int head) {
    return bias ? bias + (int64_t)head * net->max_len : NULL;
}

/* Attention of some heads of one query over n keys and values with this stride. These heads read
 * contiguous parts of a row, so a few rows are read for all of them while the next are prefetched.
 * queries, out: of head 0. bias: see Network. weights: n for each of these heads. */
static void attend(const Network *net, const float *queries, const float *keys,
                   const float *values, int64_t stride, int n, Range heads, const float *bias,
                   float *weights, float *out) {
    const int size = net->head_size, by = net->n_heads / net->n_key_heads;
    const int first = heads.from / by * size, wide = (heads.to - 1) / by * size + size - first;
    float total[HEADS];
    for (int k = 0; k < n; k += ROWS) {
        const int rows = n - k < ROWS ? n - k : ROWS;
        prefetch(keys + (k + ROWS) * stride + first, stride, rows, wide);
        for (int h = heads.from; h < heads.to; h++)
            products(keys + k * stride + h / by * size, stride, rows, queries + h * size, size,
                     weights + (h - heads.from) * n + k);
    }
    prefetch(values + first, stride, n < ROWS ? n : ROWS, wide);
    for (int h = heads.from; h < heads.to; h++)
        total[h - heads.from] =
            exponentials(net, weights + (h - heads.from) * n, n, bias_of(net, bias, h));
    memset(out + heads.from * size, 0, (heads.to - heads.from) * size * sizeof *out);
    for (int k = 0; k < n; k += ROWS) {
        const int rows = n - k < ROWS ? n - k : ROWS;
        prefetch(values + (k + ROWS) * stride + first, stride, rows, wide);
        for (int h = heads.from; h < heads.to; h++)
            add_weighed(values + k * stride + h / by * size, stride, rows,
                        weights + (h - heads.from) * n + k, size, out + h * size);
    }
    for (int h = heads.from; h < heads.to; h++)
        for (int i = h * size; i < (h + 1) * size; i++) out[i] /= total[h - heads.from];
}

/* attend for any number of heads. weights: space for n of HEADS. */
static void attend_all(const Network *net, const float *queries, const float *keys,
                       const float *values, int64_t stride, int n, Range heads, const float *bias,
                       float *weights, float *out) {
    for (int h = heads.from; h < heads.to; h += HEADS) {
        const Range some = {h, h + HEADS < heads.to ? h + HEADS : heads.to};
        attend(net, queries, keys, values, stride, n, some, bias, weights, out);
    }
}

/* Normalise a head's query or key and rotate it by its position, if the network does so. Feature i
 * and feature i + rotary_dim / 2 are a point in a plane. */
static void put_in_place(const Network *net, const Layer *layer, Norm norm, int place,
                         float *head) {
    const int half = net->rotary_dim / 2;
    if (norm.gain) normalise_one(net, norm, head, net->head_size, head);
    if (!layer->cosines) return;
    const float *cosine = layer->cosines + (int64_t)place * half;
    const float *sine = layer->sines + (int64_t)place * half;
    for (int i = 0; i < half; i++) {
        float first = head[i], second = head[i + half];
        head[i] = first * cosine[i] - second * sine[i];
        head[i + half] = second * cosine[i] + first * sine[i];
    }
}

static Range rows_of(Range heads, int size) {
    return (Range){heads.from * size, heads.to * size};
}

/* Turn the scores of keys first to first + seen of n into weights, the others into 0. */
static void weigh(const Network *net, float *restrict scores, int n, int first, int seen,
                  const float *bias) {
    float *read = scores + first;
    const float total = exponentials(net, read, seen, bias);
    for (int k = 0; k < seen; k++) read[k] /= total;
    memset(scores, 0, first * sizeof *scores);
    memset(read + seen, 0, (n - first - seen) * sizeof *scores);
}

/* Self-attention of many tokens, QUERIES of them at once, as products of matrices. */
static void attend_together(const Network *net, int window, Range heads, Vectors rows,
                            Places places, const Work *work) {
    const int H = net->n_heads, G = net->n_key_heads, D = net->head_size;
    AddProduct *add_product = KERNELS_HERE[0].add_product;
    const Vectors attended = work->attended;
    for (int h = heads.from; h < heads.to; h++) {
        const float *keys = rows.at + (H + h / (H / G)) * D, *values = keys + G * D;
        for (int t = 0; t < places.n; t += QUERIES) {
            const int n = places.n - t < QUERIES ? places.n - t : QUERIES;
            const int read = places.first + t + 1; /* keys of the first of these queries */
            const int oldest = read > window ? read - window : 0;
            const int n_keys = places.first + t + n - oldest;
            const int64_t from = (oldest - places.first) * rows.apart;
            const Vectors scores = {work->scores, n_keys + GAP, NULL, 0};
            const Matrix asked = {keys + from, FLOAT32, n_keys, D, rows.apart, 1};
            const Matrix given = {values + from, FLOAT32, D, n_keys, 1, rows.apart};
            float *out = attended.at + t * attended.apart + h * D;
            memset(scores.at, 0, n * scores.apart * sizeof *scores.at);
            add_product(asked, rows.at + t * rows.apart + h * D, rows.apart, n, scores.at,
                        scores.apart);
            for (int q = 0; q < n; q++) {
                const int seen = read + q < window ? read + q : window;
                weigh(net, scores.at + q * scores.apart, n_keys, read + q - seen - oldest, seen,
                      bias_of(net, net->bias, h));
                memset(out + q * attended.apart, 0, D * sizeof *out);
            }
            add_product(given, scores.at, scores.apart, n, out, attended.apart);
        }
    }
}

/* Self-attention of few tokens, one by one. weights: space for HEADS of one query. */
static void attend_in_turn(const Network *net, int window, Range heads, Vectors rows,
                           Places places, float *weights, Vectors attended) {
    const int H = net->n_heads, G = net->n_key_heads, D = net->head_size;
    const float *keys = rows.at + (int64_t)H * D, *values = keys + (int64_t)G * D;
    const int64_t row = (int64_t)(H + 2 * G) * D; /* from a token to the one before it */
    for (int t = 0; t < places.n; t++) {
        const int read = place_of(places, t) + 1, n = read < window ? read : window;
        const int64_t oldest = t * rows.apart - (n - 1) * row;
        attend_all(net, rows.at + t * rows.apart, keys + oldest, values + oldest, row, n, heads,
                   net->bias, weights, attended.at + t * attended.apart);
    }
}

/* Self-attention: the new queries, keys and values into `rows`, what this thread's heads read of
 * them and of the past into work->attended. weights: room for those of HEADS of one query. */
static void attend_to_past(const Network *net, const Layer *layer, Vectors input, Places places,
                           const Work *work, Vectors rows, float *weights) {
    const Attention *own = &layer->self;
    const int C = net->width, H = net->n_heads, G = net->n_key_heads, D = net->head_size;
    const Share share = work->share;
    const Share from_the_end = {share.count - 1 - share.index, share.count}; /* evens the work */
    const int apart = G % share.count == 0; /* each thread makes all that its own heads read */
    const Range heads = part_of(H, share), groups = part_of(G, share);
    const Range others = apart ? groups : part_of(G, from_the_end);
    const Vectors keys = {rows.at + (int64_t)H * D, rows.apart, NULL, 0};
    const Vectors values = {keys.at + (int64_t)G * D, rows.apart, NULL, 0};
    input = rounded(net, input, C, work);
    multiply(net, &own->query, places.n, input, C, rows_of(heads, D), NONE, rows);
    multiply(net, &own->key, places.n, input, C, rows_of(groups, D), NONE, keys);
    multiply(net, &own->value, places.n, input, C, rows_of(others, D), NONE, values);
    for (int t = 0; t < places.n; t++) {
        float *query = rows.at + t * rows.apart, *key = keys.at + t * rows.apart;
        for (int h = heads.from; h < heads.to; h++)
            put_in_place(net, layer, own->query_norm, place_of(places, t), query + h * D);
        for (int g = groups.from; g < groups.to; g++)
            put_in_place(net, layer, own->key_norm, place_of(places, t), key + g * D);
    }
    if (!apart) {
#pragma omp barrier
    }
    if (places.n > FEW_TOKENS)
        attend_together(net, layer->window, heads, rows, places, work);
    else
        attend_in_turn(net, layer->window, heads, rows, places, weights, work->attended);
}

/* Cross-attention over the encoder's memory. */
static void attend_to_memory(const Network *net, const Text *text, int index, Vectors input,
                             const Work *work, Vectors asked, float *weights) {
    const Attention *cross = &net->layers[index].cross;
    const int H = net->n_heads, G = net->n_key_heads, D = net->head_size;
    const float *memory = text->memory + (int64_t)index * text->n_memory * 2 * G * D;
    const Range heads = part_of(H, work->share);
    input = rounded(net, input, net->width, work);
    multiply(net, &cross->query, work->n, input, net->width, rows_of(heads, D), NONE, asked);
    for (int t = 0; t < work->n; t++) {
        float *queries = asked.at + t * asked.apart;
        for (int h = heads.from; cross->query_norm.gain && h < heads.to; h++)
            normalise_one(net, cross->query_norm, queries + h * D, D, queries + h * D);
        attend_all(net, queries, memory, memory + G * D, 2 * G * D, text->n_memory, heads, NULL,
                   weights, work->attended.at + t * work->attended.apart);
    }
}
