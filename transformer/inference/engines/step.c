/* One more token of one text through a decoder, on a CPU.
 *
 * The arithmetic of transformer/model/, fused: there, every number has a name and a place; here,
 * only what the next token needs is kept, and the weights are read once, as they are stored.
 * compiled.py describes the network and the text to it. Each thread computes some of the rows of
 * every matrix; a barrier stands wherever the next product reads what other threads wrote.
 */
#include "attention.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* What a sub-layer reads, and what its result is added to: with pre-norm the norm of the stream
 * and the stream, with post-norm the norm of the last sum for both. Side by side, sub-layers read
 * what the layer was given. */
typedef struct {
    const float *input, *stream;
} Sides;

static Sides before(const Network *net, Norm own, Norm last, const float *given, const float *sum,
                    float *normed) {
    if (!net->norm_first) {
        normalise(net, last, sum, net->width, normed);
        return (Sides){normed, normed};
    }
    normalise(net, own, net->parallel ? given : sum, net->width, normed);
    return (Sides){normed, sum};
}

/* Some of the hidden units: expanded, activated, and gated where there is a gate. */
static void expand(const Network *net, const Layer *layer, const float *input, Range units,
                   float *hidden) {
    const int n = units.to - units.from;
    if (!layer->gate.weight) {
        multiply(net, &layer->expand, input, net->width, units, NULL, hidden);
        activate(net->activation, hidden + units.from, n);
        return;
    }
    float open[n];
    multiply(net, &layer->gate, input, net->width, units, NULL, hidden);
    activate(net->activation, hidden + units.from, n);
    memcpy(open, hidden + units.from, n * sizeof *open);
    multiply(net, &layer->expand, input, net->width, units, NULL, hidden);
    for (int i = 0; i < n; i++) hidden[units.from + i] *= open[i];
}

static void read_layer(const Network *net, const Text *text, int index, int place, Share share) {
    const Layer *layer = net->layers + index;
    const int C = net->width, F = net->hidden, wide = net->n_heads * net->head_size;
    const int post = !net->norm_first;
    const int longest = net->max_len > text->n_memory ? net->max_len : text->n_memory;
    const Range rows = part_of(C, share), units = part_of(F, share);
    const int64_t at = (int64_t)index * net->max_len + place;
    float *x = text->stream + at * C, *next = x + (int64_t)net->max_len * C;
    float *attended = text->work, *hidden = attended + wide;
    float *first = hidden + F, *second = first + C, *third = second + C; /* sums of the stream */
    float normed[C], weights[longest];

    float *row = text->heads + at * (net->n_heads + 2 * net->n_key_heads) * net->head_size;
    Sides own = {x, x};
    if (!post) own = before(net, layer->self.norm, layer->self.norm, x, x, normed);
    attend_to_past(net, &layer->self, own.input, place, share, row, weights, attended);
#pragma omp barrier
    multiply(net, &layer->self.output, attended, wide, rows, own.stream, first);
#pragma omp barrier
    Norm last = layer->self.norm;
    float *sum = first;
    if (net->crosses) {
        Sides cross = before(net, layer->cross.norm, last, x, sum, normed);
        attend_to_memory(net, text, index, cross.input, share, text->crossing + at * wide, weights,
                         attended);
#pragma omp barrier
        multiply(net, &layer->cross.output, attended, wide, rows, cross.stream, second);
#pragma omp barrier
        last = layer->cross.norm;
        sum = second;
    }
    Sides forward = before(net, layer->norm, last, x, sum, normed);
    expand(net, layer, forward.input, units, hidden);
#pragma omp barrier
    multiply(net, &layer->contract, hidden, F, rows, forward.stream, post ? third : next);
#pragma omp barrier
    if (post) {
        if (share.index == 0) normalise(net, layer->norm, third, C, next);
#pragma omp barrier
    }
}

/* The vector of a token at a place, as the first layer reads it. */
static void embed(const Network *net, int token, int place, float *x) {
    const int C = net->width;
    const int64_t first = (int64_t)token * C * (net->tokens.type == FLOAT32 ? 4 : 2);
    widen(net->tokens.type, (const char *)net->tokens.weight + first, C, x);
    for (int i = 0; i < C; i++) {
        x[i] *= net->scale;
        if (net->positions) x[i] += net->positions[(int64_t)place * C + i];
        if (net->kind) x[i] += net->kind[i];
    }
    if (net->start.gain) normalise(net, net->start, x, C, x);
}

/* The logits of what leaves the last layer: this thread's share of them. */
static void predict(const Network *net, const float *out, float *work, Share share, float *logits) {
    const int C = net->width;
    float normed[C];
    if (net->end.gain) {
        normalise(net, net->end, out, C, normed);
        out = normed;
    }
    if (net->dense.weight) {
        multiply(net, &net->dense, out, C, part_of(C, share), NULL, work);
#pragma omp barrier
        memcpy(normed, work, sizeof normed);
        activate(net->activation, normed, C);
        normalise(net, net->dense_norm, normed, C, normed);
        out = normed;
    }
    multiply(net, &net->head, out, C, part_of(net->vocabulary, share), NULL, logits);
}

static Share own_share(void) {
#ifdef _OPENMP
    return (Share){omp_get_thread_num(), omp_get_num_threads()};
#else
    return (Share){0, 1};
#endif
}

/* Read `token` at `place`: what it adds to the text, and the logits (V,) for the token after it.
 * What stands before `place` must have been read. */
void read_token(const Network *net, const Text *text, float *logits, int token, int place,
                int n_threads) {
    float *x = text->stream + (int64_t)place * net->width;
    embed(net, token, place, x);
#pragma omp parallel num_threads(n_threads)
    {
        Share share = own_share();
        for (int i = 0; i < net->n_layers; i++) read_layer(net, text, i, place, share);
        const float *out = x + (int64_t)net->n_layers * net->max_len * net->width;
        predict(net, out, text->work, share, logits);
    }
}

/* y = W x for W (n_rows, n) of a type, by one of the kernels: to time and to test them. */
void multiply_rows(int kernel, int type, const void *weights, int n_rows, const float *x, int n,
                   float *y, int n_threads) {
#pragma omp parallel num_threads(n_threads)
    {
        const Range rows = part_of(n_rows, own_share());
        const int64_t first = (int64_t)rows.from * n * (type == FLOAT32 ? 4 : 2);
        KERNELS_HERE[kernel].of[type]((const char *)weights + first, rows.to - rows.from, x, n,
                                      y + rows.from);
    }
}

/* How many kernels there are; width, side and ahead (see Kernel) of one of them. */
int kernel_facts(int kernel, int *facts) {
    if (kernel >= 0 && kernel < N_KERNELS) {
        facts[0] = KERNELS_HERE[kernel].width;
        facts[1] = KERNELS_HERE[kernel].side;
        facts[2] = KERNELS_HERE[kernel].ahead;
    }
    return N_KERNELS;
}
