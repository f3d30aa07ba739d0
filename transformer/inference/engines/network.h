/* What is read, as compiled.py describes it, and the parts of a layer that are no attention. */
#include "functions.h"
#include "kernels.h"

/* Matrices are row-major; C = width, H = n_heads, G = n_key_heads, D = head_size, F = hidden,
 * V = vocabulary. */
typedef struct {
    const void *weight; /* (out, in), of this type; NULL where there is no such map */
    const float *bias;  /* (out,) or NULL */
    int type;
} Linear;

typedef struct {
    const float *gain, *bias; /* (C,) or (D,); gain NULL where there is no norm */
} Norm;

typedef struct {
    Linear query, key, value, output;
    Norm norm, query_norm, key_norm;
} Attention;

typedef struct {
    Attention self, cross; /* cross: used where the network crosses */
    Linear gate, expand, contract;
    Norm norm;
} Layer;

typedef struct {
    int n_layers, n_heads, n_key_heads, head_size, width, hidden, vocabulary, max_len;
    int window, n_turned;                            /* tokens read; features of a head turned */
    int norm_first, parallel, rms, activation, crosses;
    int kernels[N_TYPES];                            /* which of KERNELS_HERE, by type of weights */
    float eps, scale;                                /* of the norms; of the token embedding */
    Linear tokens;                                   /* (V, C) */
    const float *positions, *kind;                   /* (max_len, C), (C,) or NULL: added to it */
    const float *cosines, *sines;                    /* (max_len, n_turned / 2) */
    Norm start, end;                                 /* after the embedding; before the head */
    Linear dense, head;                              /* dense, its activation and norm: before */
    Norm dense_norm;                                 /* the head, where there is one */
    const Layer *layers;
} Network;

typedef struct {
    float *heads;    /* (n_layers, max_len, H + 2 G, D): queries, keys and values */
    float *crossing; /* (n_layers, max_len, H, D): queries of the cross-attention */
    float *stream;   /* (n_layers + 1, max_len, C): before each layer and after the last */
    float *memory;   /* (n_layers, n_memory, 2, G, D): what the cross-attention reads */
    float *work;     /* MOST_TOKENS (H D + 2 F + 3 C) numbers */
    int n_memory;
} Text;

enum { MOST_TOKENS = 16 }; /* that are read side by side; compiled.py counts them so */

/* A vector for each of the tokens that are read, each `apart` numbers from the one before. */
typedef struct {
    float *at;
    int64_t apart;
} Vectors;

static const Vectors NONE = {NULL, 0};

/* Tokens that are read side by side: how many, and the place of the first. */
typedef struct {
    int n, first;
} Places;

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

/* y = W x + bias (+ add) of n tokens, for some of the rows. */
static void multiply(const Network *net, const Linear *map, int n, Vectors x, int n_in, Range rows,
                     Vectors add, Vectors y) {
    const int64_t first = (int64_t)rows.from * n_in * (map->type == FLOAT32 ? 4 : 2);
    const char *weights = (const char *)map->weight + first;
    const int n_rows = rows.to - rows.from;
    if (n == 1)
        KERNELS_HERE[net->kernels[map->type]].of[map->type](weights, n_rows, x.at, n_in,
                                                            y.at + rows.from);
    else
        KERNELS_HERE[0].several[map->type](weights, n_rows, x.at, x.apart, n, n_in,
                                           y.at + rows.from, y.apart);
    for (int t = 0; t < n; t++) {
        const float *more = add.at ? add.at + t * add.apart : NULL;
        float *made = y.at + t * y.apart;
        for (int k = rows.from; k < rows.to; k++)
            made[k] += (map->bias ? map->bias[k] : 0) + (more ? more[k] : 0);
    }
}

/* n weights of a type, one row of an embedding, as float32. */
static void widen(int type, const void *from, int n, float *to) {
    const uint16_t *halves = from;
    if (type == FLOAT32) memcpy(to, from, n * sizeof *to);
    for (int i = 0; i < n && type != FLOAT32; i++) {
        uint32_t bits = (uint32_t)halves[i] << 16;
        if (type == FLOAT16) bits = (halves[i] & 0x7fffu) << 13;
        memcpy(to + i, &bits, sizeof bits);
        if (type == FLOAT16) to[i] *= halves[i] & 0x8000 ? -0x1p112f : 0x1p112f;
    }
}

/* A layer norm, or with rms a root mean square norm; y may be x. */
static void normalise_one(const Network *net, Norm norm, const float *x, int n, float *y) {
    float sum = 0, squares = 0, mean = 0;
    if (!net->rms) {
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < n; i++) sum += x[i];
        mean = sum / n;
    }
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    float by = 1.0f / sqrtf(squares / n + net->eps);
    if (norm.bias) {
#pragma omp simd
        for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * by * norm.gain[i] + norm.bias[i];
    } else {
#pragma omp simd
        for (int i = 0; i < n; i++) y[i] = (x[i] - mean) * by * norm.gain[i];
    }
}

/* The same of n tokens, into rows that follow each other. */
static Vectors normalise(const Network *net, Norm norm, int n, Vectors x, float *into) {
    const int C = net->width;
    for (int t = 0; t < n; t++) normalise_one(net, norm, x.at + t * x.apart, C, into + t * C);
    return (Vectors){into, C};
}
