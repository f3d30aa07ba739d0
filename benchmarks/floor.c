/* Reading memory as fast as it can be: each thread in several streams at once. */
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef float Lanes __attribute__((vector_size(32), aligned(4)));

static inline __attribute__((always_inline)) float read_part(const float *from, int64_t n, int streams,
                                                             int ahead) {
    Lanes sums[16] = {{0}};
    const int64_t each = n / streams;
    for (int64_t i = 0; i + 16 <= each; i += 16)
        for (int k = 0; k < streams; k++) {
            const float *at = from + k * each + i;
            if (ahead) __builtin_prefetch(at + ahead);
            sums[2 * k] += *(const Lanes *)at;
            sums[2 * k + 1] += *(const Lanes *)(at + 8);
        }
    float sum = 0;
    for (int k = 1; k < 16; k++) sums[0] += sums[k];
    for (int k = 0; k < 8; k++) sum += sums[0][k];
    return sum;
}

/* The sum of n numbers, read in 1, 2, 4 or 8 streams a thread; ahead: asked for 1 KB before. */
float read_all(const float *from, int64_t n, int streams, int ahead, int n_threads) {
    float sum = 0;
#pragma omp parallel num_threads(n_threads) reduction(+ : sum)
    {
        int64_t each = n, first = 0;
#ifdef _OPENMP
        each = n / omp_get_num_threads(), first = each * omp_get_thread_num();
#endif
        const float *part = from + first;
        switch (2 * streams + (ahead != 0)) {
        case 2: sum += read_part(part, each, 1, 0); break;
        case 3: sum += read_part(part, each, 1, 256); break;
        case 4: sum += read_part(part, each, 2, 0); break;
        case 5: sum += read_part(part, each, 2, 256); break;
        case 8: sum += read_part(part, each, 4, 0); break;
        case 9: sum += read_part(part, each, 4, 256); break;
        case 16: sum += read_part(part, each, 8, 0); break;
        case 17: sum += read_part(part, each, 8, 256); break;
        }
    }
    return sum;
}
