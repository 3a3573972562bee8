// Products with rows and combinations of rows, each in one pass over them: they are too many for the second
// cache, so that the passes are what costs. Included by sfo.cpp only, inside its unnamed namespace.

constexpr int ROWS_TOGETHER = 8;
constexpr std::int64_t PASS_BLOCK =
    1024;  // columns: what belongs to them in float64 stays in the first cache

// As many elements as a register holds of float64.
inline Vec<double> load_wide(const double* p) { return load(p); }
inline Vec<double> load_wide(const float* p) {
    double wide[LANES<double>];
    for (int i = 0; i < LANES<double>; ++i) wide[i] = double(p[i]);
    return load(wide);
}

// R rows times V vectors, already in float64, over one block of columns.
template <class T, int R, int V>
void products_tile(const Passes<T>& job, std::int64_t row, std::int64_t start, std::int64_t columns,
                   const double (*vectors)[PASS_BLOCK]) {
    constexpr int n = LANES<double>;
    const T* rows = job.rows + row * job.length + start;
    Vec<double> acc[R][V] = {};
    std::int64_t j = 0;
    for (; j + n <= columns; j += n) {
        Vec<double> own[V];
#pragma GCC unroll 6
        for (int v = 0; v < V; ++v) own[v] = load(vectors[v] + j);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Vec<double> x = load_wide(rows + r * job.length + j);
#pragma GCC unroll 6
            for (int v = 0; v < V; ++v) acc[r][v] += x * own[v];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) {
            double total = sum(acc[r][v]);
            for (std::int64_t i = j; i < columns; ++i)
                total += double(rows[r * job.length + i]) * vectors[v][i];
            job.products[v][row + r] += total;
        }
}
template <class T, int V>
void products_block(const Passes<T>& job, std::int64_t start, std::int64_t columns) {
    double vectors[V][PASS_BLOCK];
    for (int v = 0; v < V; ++v)
        for (std::int64_t j = 0; j < columns; ++j) vectors[v][j] = double(job.vector[v][start + j]);
    std::int64_t row = 0;
    for (; row + ROWS_TOGETHER <= job.count; row += ROWS_TOGETHER)
        products_tile<T, ROWS_TOGETHER, V>(job, row, start, columns, vectors);
    for (; row < job.count; ++row) products_tile<T, 1, V>(job, row, start, columns, vectors);
}
template <class T>
void products(const Passes<T>& job) {
    for (int v = 0; v < job.together; ++v)
        for (std::int64_t row = 0; row < job.count; ++row) job.products[v][row] = 0;
    for (std::int64_t start = 0; start < job.length; start += PASS_BLOCK) {
        const std::int64_t columns = at_most(PASS_BLOCK, job.length - start);
        if (job.together == 1)
            products_block<T, 1>(job, start, columns);
        else
            products_block<T, 2>(job, start, columns);
    }
}

template <class T>
void project(Projection<T>& p) {
    const std::int64_t K = p.size;
    double *inner = p.work, *last = p.work + K + 1;
    Passes<T> job{};
    job.rows = p.rows;
    job.count = K + 1;
    job.length = p.length;
    job.together = p.learn ? 2 : 1;
    job.vector[0] = p.rows + K * p.length;
    job.products[0] = inner;
    job.vector[1] = p.rows + (K - 1) * p.length;
    job.products[1] = last;
    products(job);
    if (p.learn) {
        last[K - 1] -= 1;
        for (std::int64_t k = 0; k < K; ++k)
            p.defect[(K - 1) * p.capacity + k] = p.defect[k * p.capacity + K - 1] = last[k];
    }
    for (std::int64_t k = 0; k < K; ++k)
        p.coordinates[k] = inner[k] - dot(p.defect + k * p.capacity, inner, K);
    p.square = inner[K];
    p.rest = p.square - dot(p.coordinates, inner, K);
}

template <class T, int R, int V>
void combinations_tile(const Passes<T>& job, std::int64_t row, std::int64_t start, std::int64_t columns,
                       double (*sums)[PASS_BLOCK]) {
    constexpr int n = LANES<double>;
    const T* rows = job.rows + row * job.length + start;
    Vec<double> factor[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) factor[r][v] = splat<double>(job.coefficients[v][row + r]);
    std::int64_t j = 0;
    for (; j + n <= columns; j += n) {
        Vec<double> own[V];
#pragma GCC unroll 6
        for (int v = 0; v < V; ++v) own[v] = load(sums[v] + j);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Vec<double> x = load_wide(rows + r * job.length + j);
#pragma GCC unroll 6
            for (int v = 0; v < V; ++v) own[v] += x * factor[r][v];
        }
#pragma GCC unroll 6
        for (int v = 0; v < V; ++v) store(sums[v] + j, own[v]);
    }
    for (; j < columns; ++j)
        for (int v = 0; v < V; ++v)
            for (int r = 0; r < R; ++r)
                sums[v][j] += job.coefficients[v][row + r] * double(rows[r * job.length + j]);
}
template <class T, int V>
void combinations_block(const Passes<T>& job, std::int64_t start, std::int64_t columns) {
    double sums[V][PASS_BLOCK];
    for (int v = 0; v < V; ++v)
        for (std::int64_t j = 0; j < columns; ++j)
            sums[v][j] = job.scale[v] * double(job.vector[v][start + j]);
    std::int64_t row = 0;
    for (; row + ROWS_TOGETHER <= job.count; row += ROWS_TOGETHER)
        combinations_tile<T, ROWS_TOGETHER, V>(job, row, start, columns, sums);
    for (; row < job.count; ++row) combinations_tile<T, 1, V>(job, row, start, columns, sums);
    for (int v = 0; v < V; ++v)
        for (std::int64_t j = 0; j < columns; ++j) job.combination[v][start + j] = T(sums[v][j]);
}
template <class T>
void combinations(const Passes<T>& job) {
    for (std::int64_t start = 0; start < job.length; start += PASS_BLOCK) {
        const std::int64_t columns = at_most(PASS_BLOCK, job.length - start);
        if (job.together == 1)
            combinations_block<T, 1>(job, start, columns);
        else
            combinations_block<T, 2>(job, start, columns);
    }
}

// Products of all rows with each other: those from row `first` on times V of them, over one block of columns.
constexpr int GRAM_ROWS = 4, GRAM_VECTORS = VECTOR_BYTES == 64 ? 6 : 2;
constexpr std::int64_t GRAM_BLOCK = PASS_BLOCK / 2;

template <class T, int V>
void gram_columns(Passes<T> job, std::int64_t first, std::int64_t start, std::int64_t columns,
                  double* result) {
    double vectors[V][PASS_BLOCK];
    for (int v = 0; v < V; ++v) {
        job.products[v] = result + (first + v) * job.count;
        for (std::int64_t j = 0; j < columns; ++j)
            vectors[v][j] = double(job.rows[(first + v) * job.length + start + j]);
    }
    std::int64_t row = first;
    for (; row + GRAM_ROWS <= job.count; row += GRAM_ROWS)
        products_tile<T, GRAM_ROWS, V>(job, row, start, columns, vectors);
    for (; row < job.count; ++row) products_tile<T, 1, V>(job, row, start, columns, vectors);
}
template <class T>
void gram(const Passes<T>& job, double* result) {
    static_assert(GRAM_VECTORS <= MOST_TOGETHER);
    for (std::int64_t i = 0; i < job.count * job.count; ++i) result[i] = 0;
    for (std::int64_t start = 0; start < job.length; start += GRAM_BLOCK) {
        const std::int64_t columns = at_most(GRAM_BLOCK, job.length - start);
        std::int64_t first = 0;
        for (; first + GRAM_VECTORS <= job.count; first += GRAM_VECTORS)
            gram_columns<T, GRAM_VECTORS>(job, first, start, columns, result);
        for (; first < job.count; ++first) gram_columns<T, 1>(job, first, start, columns, result);
    }
    for (std::int64_t i = 0; i < job.count; ++i)
        for (std::int64_t j = i + 1; j < job.count; ++j)
            result[j * job.count + i] = result[i * job.count + j];
}
