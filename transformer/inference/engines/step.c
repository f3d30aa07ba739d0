/* Read tokens of one text with a decoder on a CPU: usually one, several for a prompt. Or read one
 * token of each of several texts: the hypotheses of a beam search.
 *
 * The arithmetic of transformer/model/, fused: only the numbers that later tokens need are kept,
 * and the weights are read as they are stored, once for up to MOST_TOKENS.
 * description.py describes the network and the text. Each thread computes some of the rows of every
 * matrix, with a barrier before a product that reads other threads' results.
 */
#include "attention.h"
#ifdef _OPENMP /* declared here: Apple's clang comes without omp.h */
int omp_get_thread_num(void);
int omp_get_num_threads(void);
#endif

/* A sub-layer's input, and the stream that its output is added to: with pre-norm the norm of the
 * stream and the stream, with post-norm the norm of the last sum for both. Parallel sub-layers read
 * the layer's input. */
typedef struct {
    Vectors input, stream;
} Sides;

static Sides before(const Network *net, Norm own, Norm last, const Work *work, Vectors given,
                    Vectors sum) {
    if (!net->norm_first) {
        const Vectors both = normalise(net, last, sum, work);
        return (Sides){both, both};
    }
    return (Sides){normalise(net, own, net->parallel ? given : sum, work), sum};
}

/* This thread's share of the hidden units: expanded, activated and, if configured, gated. */
static void expand(const Network *net, const Layer *layer, Vectors input, const Work *work) {
    const Range units = part_of(net->hidden, work->share);
    const int gated = layer->gate.weight != NULL, count = units.to - units.from, C = net->width;
    input = rounded(net, input, C, work);
    multiply(net, &layer->expand, work->n, input, C, units, NONE, work->hidden);
    if (gated) multiply(net, &layer->gate, work->n, input, C, units, NONE, work->open);
    for (int t = 0; t < work->n; t++) {
        float *made = work->hidden.at + t * work->hidden.apart + units.from;
        float *gate = work->open.at + t * work->open.apart + units.from;
        activate(net->activation, gated ? gate : made, count);
        for (int i = 0; gated && i < count; i++) made[i] *= gate[i];
    }
}

/* sum = stream + what a sub-layer's last map makes of x, normalised or scaled if configured. */
static void add_output(const Network *net, const Linear *map, Norm after, const Work *work,
                       Vectors x, int n_in, Vectors stream, Vectors sum) {
    const Range rows = part_of(net->width, work->share);
    x = rounded(net, x, n_in, work);
    if (!after.gain && net->residual_scale == 1) {
        multiply(net, map, work->n, x, n_in, rows, stream, sum);
    } else {
        multiply(net, map, work->n, x, n_in, rows, NONE, work->made);
#pragma omp barrier
        add_normed(net, after, work->n, work->made, rows, stream, sum);
    }
#pragma omp barrier
}

static void read_layer(const Network *net, const Text *text, int index, Places places,
                       const Work *work) {
    const Layer *layer = net->layers + index;
    const int C = net->width, n = places.n, wide = net->n_heads * net->head_size;
    const int row = wide + 2 * net->n_key_heads * net->head_size, post = !net->norm_first;
    const int L = net->n_layers, seen = place_of(places, n - 1) + 1;
    const Vectors x = vectors_of(text, text->stream, L + 1, index, C, places);
    const Vectors next = vectors_of(text, text->stream, L + 1, index + 1, C, places);
    float weights[HEADS * (seen > text->n_memory ? seen : text->n_memory)];

    Sides own = {x, x};
    if (!post) own = before(net, layer->self.norm, layer->self.norm, work, x, x);
    attend_to_past(net, layer, own.input, places, work,
                   vectors_of(text, text->heads, L, index, row, places), weights);
#pragma omp barrier
    Vectors sum = work->sums[0];
    add_output(net, &layer->self.output, layer->self.after, work, work->attended, wide, own.stream,
               sum);
    Norm last = layer->self.norm;
    if (net->crosses) {
        Sides cross = before(net, layer->cross.norm, last, work, x, sum);
        attend_to_memory(net, text, index, cross.input, work,
                         vectors_of(text, text->crossing, L, index, wide, places), weights);
#pragma omp barrier
        last = layer->cross.norm;
        sum = work->sums[1];
        add_output(net, &layer->cross.output, layer->cross.after, work, work->attended, wide,
                   cross.stream, sum);
    }
    Sides forward = before(net, layer->norm, last, work, x, sum);
    expand(net, layer, forward.input, work);
#pragma omp barrier
    sum = post ? work->sums[2] : next;
    add_output(net, &layer->contract, layer->after, work, work->hidden, net->hidden, forward.stream,
               sum);
    if (post) {
        const Range own_tokens = part_of(n, work->share);
        for (int t = own_tokens.from; t < own_tokens.to; t++)
            normalise_one(net, layer->norm, sum.at + t * C, C, next.at + t * next.apart);
#pragma omp barrier
    }
}

/* The input of the first layer for a token at a position. */
static void embed(const Network *net, int token, int place, float *x) {
    const int C = net->width;
    const int64_t first = (int64_t)token * C * (net->tokens.type == FLOAT32 ? 4 : 2);
    widen(net->tokens.type, (const char *)net->tokens.weight + first, C, x);
    for (int i = 0; i < C; i++) {
        x[i] *= net->scale;
        if (net->positions) x[i] += net->positions[(int64_t)place * C + i];
        if (net->kind) x[i] += net->kind[i];
    }
    if (net->start.gain) normalise_one(net, net->start, x, C, x);
}

/* This thread's share of the logits (n, V) of a few tokens. normed: space for n C numbers of this
 * thread; work: space for as many, shared by all threads. */
static void predict(const Network *net, int n, Vectors out, float *normed, float *work, Share share,
                    float *logits) {
    const int C = net->width, V = net->vocabulary;
    const Vectors own = {normed, C, NULL, 0};
    if (net->end.gain) {
        for (int t = 0; t < n; t++)
            normalise_one(net, net->end, out.at + t * out.apart, C, normed + t * C);
        out = own;
    }
    if (net->dense.weight) {
        multiply(net, &net->dense, n, out, C, part_of(C, share), NONE, (Vectors){work, C, NULL, 0});
#pragma omp barrier
        memcpy(normed, work, (int64_t)n * C * sizeof *normed);
#pragma omp barrier
        for (int t = 0; t < n; t++) {
            activate(net->activation, normed + t * C, C);
            normalise_one(net, net->dense_norm, normed + t * C, C, normed + t * C);
        }
        out = own;
    }
    const Range rows = part_of(V, share);
    multiply(net, &net->head, n, out, C, rows, NONE, (Vectors){logits, V, NULL, 0});
    for (int t = 0; t < n; t++) {
        float *some = logits + (int64_t)t * V + rows.from;
        const int count = rows.to - rows.from;
        for (int i = 0; net->logit_scale != 1 && i < count; i++) some[i] *= net->logit_scale;
        if (net->logit_cap) soft_cap(some, count, net->logit_cap);
    }
}

static Share own_share(void) {
#ifdef _OPENMP
    return (Share){omp_get_thread_num(), omp_get_num_threads()};
#else
    return (Share){0, 1};
#endif
}

static int lesser(int a, int b) { return a < b ? a : b; }

/* Scratch numbers for reading n tokens with contexts up to `longest`. */
int64_t work_size(const Network *net, int n, int longest, int n_threads) {
    const int wide = net->n_heads * net->head_size + 2 * net->hidden + 5 * net->width + 4 * GAP;
    const int64_t scores = n > FEW_TOKENS ? (int64_t)n_threads * QUERIES * (longest + GAP) : 0;
    return (int64_t)lesser(n, MOST_TOKENS) * (wide + pairs_wide(net)) + scores;
}

static void read_places(const Network *net, const Text *text, float *logits, const int *tokens,
                        Places all, int n_logits, int n_threads) {
    const int C = net->width, L = net->n_layers, n = all.n;
    const Vectors x = vectors_of(text, text->stream, L + 1, 0, C, all);
    const Vectors out = vectors_of(text, text->stream, L + 1, L, C, all);
    for (int t = 0; t < n; t++) embed(net, tokens[t], place_of(all, t), x.at + t * x.apart);
#pragma omp parallel num_threads(n_threads)
    {
        const Share share = own_share();
        float room[lesser(n, FEW_TOKENS) * C + GAP]; /* larger, to align it for wide vectors */
        float *own = (float *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
        for (int done = 0; done < n; done += MOST_TOKENS) {
            const Places places = {lesser(n - done, MOST_TOKENS), place_of(all, done), all.apart};
            const Work work = divide(net, text->work, places.n, place_of(all, n), share, own);
            for (int i = 0; i < L; i++) read_layer(net, text, i, places, &work);
        }
        for (int done = 0; done < n_logits; done += FEW_TOKENS) {
            const int count = lesser(n_logits - done, FEW_TOKENS);
            const Vectors some = {out.at + (n - n_logits + done) * out.apart, out.apart, NULL, 0};
            predict(net, count, some, own, text->work, share,
                    logits + (int64_t)done * net->vocabulary);
        }
    }
}

/* Read n tokens, the first at position `place`, into the text's buffers; logits (n_logits, V): for
 * the tokens after the last of them. All tokens before `place` must have been read. */
void read_tokens(const Network *net, const Text *text, float *logits, const int *tokens, int n,
                 int place, int n_logits, int n_threads) {
    read_places(net, text, logits, tokens, (Places){n, place, 1}, n_logits, n_threads);
}

/* Read a token of each of n texts, at most FEW_TOKENS, all at position `place`; logits (n, V). */
void read_each(const Network *net, const Text *texts, float *logits, const int *tokens, int n,
               int place, int n_threads) {
    read_places(net, texts, logits, tokens, (Places){n, place, 0}, n, n_threads);
}

/* The index of the first maximum, except `never`. */
static int likeliest(const float *logits, int n, int never) {
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < n; i++) most = i != never && logits[i] > most ? logits[i] : most;
    int first = 0;
    while (first < n - 1 && (first == never || logits[first] != most)) first++;
    return first;
}

/* Read tokens[0] at `place` and then the likeliest next token, at most n in all, stopping before
 * any of `ends`. Fills tokens and logits (n, V); returns how many were read. never: a token that is
 * not chosen, or -1. */
int read_ahead(const Network *net, const Text *text, float *logits, int *tokens, int n, int place,
               const int *ends, int n_ends, int never, int n_threads) {
    for (int read = 0; read < n; read++, logits += net->vocabulary) {
        for (int k = 0; read && k < n_ends; k++)
            if (tokens[read] == ends[k]) return read;
        read_tokens(net, text, logits, tokens + read, 1, place + read, 1, n_threads);
        if (read + 1 < n) tokens[read + 1] = likeliest(logits, net->vocabulary, never);
    }
    return n;
}

/* `bytes` bytes n times, `apart` bytes between two starts: see changes.py. */
typedef struct {
    const char *at;
    int64_t n, bytes, apart;
} Pieces;

/* Whether these pieces, one after the other, are the bytes of `before`. Most are one number of a row
 * in no cache: the CPU is told PIECES_AHEAD of them in advance. */
int are_same(const Pieces *pieces, int count, const char *before) {
    for (int i = 0; i < count; i++) {
        const Pieces some = pieces[i];
        const char *at = some.at;
        for (int64_t k = 0; k < some.n; k++, at += some.apart, before += some.bytes) {
            __builtin_prefetch(at + PIECES_AHEAD * some.apart);
            if (some.bytes == 4 ? memcmp(at, before, 4) : memcmp(at, before, some.bytes)) return 0;
        }
    }
    return 1;
}

/* y = W x for W (n_rows, n) of a type and n_tokens contiguous vectors x, with one of the kernels,
 * to time and test it. */
void multiply_rows(int kernel, int type, const void *weights, int n_rows, const float *x,
                   int n_tokens, int n, float *y) {
    const Kernel *own = KERNELS_HERE + kernel;
    const Matrix all = {weights, type, n_rows, n, n, 1};
    if (n_tokens == 1) own->of[type](weights, n_rows, x, n, y);
    else if (n_tokens <= FEW_TOKENS)
        own->several[type](weights, n_rows, x, n, n_tokens, n, y, n_rows);
    else {
        memset(y, 0, (int64_t)n_tokens * n_rows * sizeof *y);
        own->add_product(all, x, n, n_tokens, y, n_rows);
    }
}

/* y = W x for W (n_rows, n) of bfloat16 and n_tokens contiguous vectors x rounded to bfloat16, to
 * time and test it. pairs: room for n_tokens n / 2 numbers. Returns whether this CPU can. */
int multiply_rounded(const void *weights, int n_rows, const float *x, int n_tokens, int n, float *y,
                     float *pairs) {
#if HAS_PAIRS
    const Matrix all = {weights, BFLOAT16, n_rows, n, n, 1};
    memset(y, 0, (int64_t)n_tokens * n_rows * sizeof *y);
    to_pairs(x, n_tokens * n, pairs);
    add_rounded(all, pairs, n / 2, n_tokens, y, n_rows);
#endif
    return HAS_PAIRS;
}

/* Returns the number of kernels; facts: width, streams and ahead (see Kernel) of one. */
int kernel_facts(int kernel, int *facts) {
    if (kernel >= 0 && kernel < N_KERNELS) {
        facts[0] = KERNELS_HERE[kernel].width;
        facts[1] = KERNELS_HERE[kernel].streams;
        facts[2] = KERNELS_HERE[kernel].ahead;
    }
    return N_KERNELS;
}
