/* The structures of description.py, and the parts of a layer other than attention. */
#include "functions.h"
#include "kernels.h"

/* Matrices are row-major; C = width, H = n_heads, G = n_key_heads, D = head_size, F = hidden,
 * V = vocabulary. */
typedef struct {
    const void *weight; /* (out, in), of this type; NULL if there is none */
    const float *bias;  /* (out,) or NULL */
    int type;
} Linear;

typedef struct {
    const float *gain, *bias; /* (C,) or (D,); gain NULL if there is none */
} Norm;

typedef struct {
    Linear query, key, value, output;
    Norm norm, after, query_norm, key_norm; /* of the input or the sum; of the output */
} Attention;

typedef struct {
    Attention self, cross; /* cross: of an encoder-decoder */
    Linear gate, expand, contract;
    Norm norm, after;
    int window;                    /* tokens read */
    const float *cosines, *sines;  /* (max_len, rotary_dim / 2) or NULL: it does not rotate */
} Layer;

typedef struct {
    int n_layers, n_heads, n_key_heads, head_size, width, hidden, vocabulary, max_len;
    int rotary_dim;                                  /* features of a head rotated */
    int norm_first, parallel, rms, activation, crosses;
    int rounds; /* many tokens' vectors to bfloat16, for products with weights of bfloat16 */
    int kernels[N_TYPES];                            /* which of KERNELS_HERE, by type of weights */
    float eps, scale, residual_scale;                /* norms; token embedding; what is added */
    float score_scale, score_cap;                    /* scores are q k times it; 0: no cap */
    float logit_scale, logit_cap;
    Linear tokens;                                   /* (V, C) */
    const float *positions, *kind;                   /* (max_len, C), (C,) or NULL: added to it */
    const float *bias;                               /* (H, max_len) or NULL: added to scores */
    Norm start, end;                                 /* after the embedding; before the head */
    Linear dense, head;                              /* dense, its activation and norm: before */
    Norm dense_norm;                                 /* the head, if there is one */
    const Layer *layers;
} Network;

/* One text, or several of one length that share a memory: their heads, crossing and stream are then
 * one after the other. */
typedef struct {
    float *heads;    /* (n_layers, length, H + 2 G, D): queries, keys and values */
    float *crossing; /* (n_layers, length, H, D): queries of the cross-attention */
    float *stream;   /* (n_layers + 1, length, C): before each layer and after the last */
    float *memory;   /* (n_layers, n_memory, 2, G, D): keys and values of the cross-attention */
    float *work;     /* work_size numbers */
    int n_memory, length;
} Text;

enum {
    MOST_TOKENS = 512, /* read in parallel */
    FEW_TOKENS = 32,   /* up to here, weights are read in place; else copied into panels */
    QUERIES = 48,      /* whose attention is computed at once if there are many tokens */
    PIECES_AHEAD = 32, /* prefetched by are_same */
    GAP = 16           /* between vectors, so that they do not compete for the same cache lines */
};

/* A vector for each token, with a stride of `apart` numbers. pairs: the same numbers rounded to
 * bfloat16, two in a float, with a stride of pairs_apart; or NULL. */
typedef struct {
    float *at;
    int64_t apart;
    const float *pairs;
    int64_t pairs_apart;
} Vectors;

static const Vectors NONE = {NULL, 0, NULL, 0};

/* The tokens read in parallel: n, the first at a position. apart: 1 for consecutive tokens; 0 where
 * each continues another text at the same position. */
typedef struct {
    int n, first, apart;
} Places;

static int place_of(Places places, int t) { return places.first + t * places.apart; }

/* What these tokens have in one layer of a text's buffer of n_layers, `size` numbers a token. */
static Vectors vectors_of(const Text *text, float *buffer, int n_layers, int layer, int size,
                          Places places) {
    const int64_t at = (int64_t)layer * text->length + places.first;
    const int64_t of_text = (int64_t)n_layers * text->length * size;
    return (Vectors){buffer + at * size, places.apart ? size : of_text, NULL, 0};
}

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

/* y = bias (+ add), or y += bias (+ add), of n tokens, for some of the rows. */
static void add_bias(const Linear *map, int n, Range rows, Vectors add, Vectors y, int to_y) {
    for (int t = 0; t < n; t++) {
        const float *more = add.at ? add.at + t * add.apart : NULL;
        float *made = y.at + t * y.apart;
        for (int k = rows.from; k < rows.to; k++)
            made[k] = (to_y ? made[k] : 0) + (map->bias ? map->bias[k] : 0) + (more ? more[k] : 0);
    }
}

/* y = W x + bias (+ add) of n tokens, for some of the rows. */
static void multiply(const Network *net, const Linear *map, int n, Vectors x, int n_in, Range rows,
                     Vectors add, Vectors y) {
    Matrix some = {map->weight, map->type, rows.to - rows.from, n_in, n_in, 1};
    some.at = number_of(some, rows.from, 0);
    float *made = y.at + rows.from;
    if (n > FEW_TOKENS) {
        add_bias(map, n, rows, add, y, 0);
#if HAS_PAIRS
        if (x.pairs && map->type == BFLOAT16) {
            add_rounded(some, x.pairs, x.pairs_apart, n, made, y.apart);
            return;
        }
#endif
        KERNELS_HERE[0].add_product(some, x.at, x.apart, n, made, y.apart);
        return;
    }
    if (n == 1)
        KERNELS_HERE[net->kernels[map->type]].of[map->type](some.at, some.n_out, x.at, n_in, made);
    else
        KERNELS_HERE[0].several[map->type](some.at, some.n_out, x.at, x.apart, n, n_in, made,
                                           y.apart);
    add_bias(map, n, rows, add, y, 1);
}

/* What a norm subtracts from n numbers, and multiplies the rest with. */
typedef struct {
    float mean, by;
} Scaled;

static Scaled scaled(const Network *net, const float *x, int n) {
    float sum = 0, squares = 0, mean = 0;
    if (!net->rms) {
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < n; i++) sum += x[i];
        mean = sum / n;
    }
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return (Scaled){mean, 1.0f / sqrtf(squares / n + net->eps)};
}

/* A layer norm or, with rms, an RMS norm; y may be x. */
static void normalise_one(const Network *net, Norm norm, const float *x, int n, float *y) {
    const Scaled all = scaled(net, x, n);
    const float mean = all.mean, by = all.by;
    if (norm.bias) {
#pragma omp simd
        for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * by * norm.gain[i] + norm.bias[i];
    } else {
#pragma omp simd
        for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * by * norm.gain[i];
    }
}

/* sum = stream + the norm of what a sub-layer made, scaled, of n tokens, for some of the rows. */
static void add_normed(const Network *net, Norm after, int n, Vectors made, Range rows,
                       Vectors stream, Vectors sum) {
    for (int t = 0; t < n; t++) {
        const float *from = made.at + t * made.apart, *old = stream.at + t * stream.apart;
        float *to = sum.at + t * sum.apart;
        Scaled by = {0, 1};
        if (after.gain) by = scaled(net, from, net->width);
        for (int i = rows.from; i < rows.to; i++) {
            float x = (from[i] - by.mean) * by.by;
            if (after.gain) x = x * after.gain[i] + (after.bias ? after.bias[i] : 0);
            to[i] = old[i] + net->residual_scale * x;
        }
    }
}

/* Scratch memory of a layer: for n tokens, and for this thread. */
typedef struct {
    int n;
    Share share;
    float *own, *scores; /* n C numbers for few tokens, else QUERIES (longest + GAP) */
    Vectors normed, attended, hidden, open, sums[3], made; /* shared by all threads */
    Vectors pairs;                                         /* of `rounded` */
} Work;

static Vectors taken(float **room, int n, int64_t apart) {
    const Vectors part = {*room, apart, NULL, 0};
    *room += n * apart;
    return part;
}

/* Numbers per token for pairs of the widest vectors that are multiplied; 0 if none are rounded. */
static int pairs_wide(const Network *net) {
    const int heads = net->n_heads * net->head_size;
    const int wider = heads > net->width ? heads : net->width;
    return net->rounds ? (wider > net->hidden ? wider : net->hidden) / 2 + GAP : 0;
}

/* longest: the most keys that a query reads. */
static Work divide(const Network *net, float *room, int n, int longest, Share share, float *own) {
    const int C = net->width, F = net->hidden + GAP;
    Work work = {.n = n, .share = share, .own = own};
    work.normed = taken(&room, n, C + GAP);
    work.attended = taken(&room, n, net->n_heads * net->head_size + GAP);
    work.hidden = taken(&room, n, F);
    work.open = taken(&room, n, F);
    for (int i = 0; i < 3; i++) work.sums[i] = taken(&room, n, C);
    work.made = taken(&room, n, C);
    work.pairs = taken(&room, n, pairs_wide(net));
    work.scores = room + (int64_t)share.index * QUERIES * (longest + GAP);
    return work;
}

/* Normalise all tokens, if there is a norm. If they are few, each thread does all of them rather
 * than wait. */
static Vectors normalise(const Network *net, Norm norm, Vectors x, const Work *work) {
    if (!norm.gain) return x;
    const int C = net->width, many = work->n > FEW_TOKENS;
    const Range part = many ? part_of(work->n, work->share) : (Range){0, work->n};
    const Vectors into = many ? work->normed : (Vectors){work->own, C, NULL, 0};
    for (int t = part.from; t < part.to; t++)
        normalise_one(net, norm, x.at + t * x.apart, C, into.at + t * into.apart);
    if (many) {
#pragma omp barrier
    }
    return into;
}

/* x, with its pairs if the network rounds and the tokens are many. The threads share the work, and
 * must have read the last pairs. */
static Vectors rounded(const Network *net, Vectors x, int n_in, const Work *work) {
#if HAS_PAIRS
    if (net->rounds && work->n > FEW_TOKENS && n_in % 2 == 0) {
        const Range part = part_of(work->n, work->share);
        const Vectors pairs = work->pairs;
        for (int t = part.from; t < part.to; t++)
            to_pairs(x.at + t * x.apart, n_in, pairs.at + t * pairs.apart);
        x.pairs = pairs.at;
        x.pairs_apart = pairs.apart;
#pragma omp barrier
    }
#endif
    return x;
}
