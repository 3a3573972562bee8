// Dense X, in blocks of rows. Included by kernel.cpp only, inside its unnamed namespace.
//
// Two ways, by the number of columns:
//
//   - strips: X is turned into strips; a register holds one column of LANES rows in both products, so that
//     nothing is padded however few the columns or factors; the gradient's sums over lanes are left to the
//     end of a chunk;
//   - rows: X is read where it is; a register holds factors in the first product (padded; the projections are
//     then turned into strips), and columns of X in the second.

// Accumulators that stay in registers: 24 of 32, or 12 of 16.
constexpr bool MANY_REGISTERS = VECTOR_BYTES == 64 || VECTOR_BYTES == 16;
constexpr int FORWARD_FACTORS = MANY_REGISTERS ? 8 : 4, FORWARD_STRIPS = 3;     // strips, first product
constexpr int BACKWARD_FACTORS = 4, BACKWARD_COLUMNS = MANY_REGISTERS ? 6 : 3;  // strips, second product
constexpr int ROWS_AT_ONCE = MANY_REGISTERS ? 8 : 4, REGISTERS_AT_ONCE = 3;     // rows, both products

// Found by measurement, on a machine with 48 KB and 2 MB of first and second cache.
constexpr std::int64_t STRIPS_BELOW = 128;  // columns
constexpr std::int64_t BLOCK_BYTES = 160 * 1024, SMALL_BLOCK_BYTES = 24 * 1024;
constexpr std::int64_t MOST_LANE_BYTES = 4 << 20;
constexpr std::int64_t MOST_STRIPS = 33;
constexpr std::int64_t FEWEST_ROWS = 64;  // so many share a pass over the gradient, which no near cache holds
constexpr std::int64_t LONGEST_PREFETCH = 8192;  // bytes of a row: the machine prefetches longer ones itself
constexpr std::int64_t FACTORS_DEPTH = 256;      // columns whose packed factors fit the first cache

template <class T>
struct Plan {
    bool in_strips;
    bool direct;          // the rows of X can be used where they are
    std::int64_t strips;  // of a block
    std::int64_t rows;    // of a block
    std::int64_t padded;  // factor columns rounded up to whole registers

    explicit Plan(const Job<T>& job) {
        constexpr int n = LANES<T>;
        direct =
            !job.basis.shift && !job.basis.unit_rows && !(job.basis.constant != 0) && job.column_stride == 1;
        // Strips keep a register for every entry of the gradient: too many if there are many outputs.
        const std::int64_t lane_bytes = job.width * job.factor_columns * VECTOR_BYTES;
        in_strips = job.width < n || (job.width < STRIPS_BELOW && lane_bytes <= MOST_LANE_BYTES);
        padded = round_up(job.factor_columns, n);
        // Few columns: all that a block needs, its sums included, fits into the first cache.
        strips = (lane_bytes <= SMALL_BLOCK_BYTES ? SMALL_BLOCK_BYTES : BLOCK_BYTES) /
                 (VECTOR_BYTES * (job.width + job.factor_columns));
        strips = in_strips ? at_most(round_up(at_least(strips, 1), FORWARD_STRIPS), MOST_STRIPS)
                           : at_least(strips, FEWEST_ROWS / n);
        rows = strips * n;
    }
};

// A bump allocator over a thread's scratch; with a null start it only counts.
struct Arena {
    char* start;
    std::size_t used = 0;
    template <class U>
    U* take(std::int64_t count) {
        U* p = reinterpret_cast<U*>(start + used);
        used += (std::size_t(count) * sizeof(U) + 63) / 64 * 64;
        return p;
    }
};

template <class T>
struct Scratch {
    Link<T> link;
    Vec<T>* z;      // (strips, factor_columns): projections, then slopes
    Vec<T>* x;      // in strips: (strips, width)
    T* rows;        // in rows, when those of X cannot be used: (rows, width); CSR: (LANES, stride)
    T* products;    // in rows: (rows, padded)
    Vec<T>* lanes;  // in strips: (factor_columns, width) registers, still to be summed over lanes
    T* gradient;    // in rows: (factor_columns, width)
    std::size_t bytes;

    Scratch(const Job<T>& job, void* start, bool sparse) {
        const Plan<T> plan(job);
        const bool with_gradient = !sparse && job.want == Want::gradient;
        const std::int64_t strips = sparse ? 1 : plan.strips, size = job.factor_columns * job.width;
        Arena arena{static_cast<char*>(start)};
        link.take(arena, job, strips);
        z = arena.take<Vec<T>>(strips * job.factor_columns + 2 * LANES<T>);
        x = arena.take<Vec<T>>(!sparse && plan.in_strips ? strips * job.width : 0);
        rows = arena.take<T>(sparse                          ? LANES<T> * job.stride
                             : plan.in_strips || plan.direct ? 0
                                                             : plan.rows * job.width);
        products = arena.take<T>(sparse || plan.in_strips ? 0 : plan.rows * plan.padded);
        lanes = arena.take<Vec<T>>(with_gradient && plan.in_strips ? size : 0);
        gradient = arena.take<T>(with_gradient && !plan.in_strips ? size : 0);
        bytes = arena.used;
    }
};

// Asks for the cache lines of the next block, evenly spread over the current one, which they would stall if
// asked for all at once: in every step of the loops over strips, once in every tile of rows.
struct Prefetch {
    const char* next;
    std::uint32_t rate;  // lines per step, in 1/65536
    std::uint32_t credit;
    void step() {
        for (credit += rate; credit >= 65536; credit -= 65536, next += 64) __builtin_prefetch(next, 0, 2);
    }
};

template <class T>
Prefetch prefetch_rows(const Job<T>& job, std::int64_t begin, std::int64_t end, std::int64_t steps) {
    const std::int64_t row_bytes = job.row_stride * std::int64_t(sizeof(T));
    if (begin >= end || job.column_stride != 1 || job.row_stride < job.columns ||
        row_bytes > LONGEST_PREFETCH)
        return {nullptr, 0, 0};
    const std::int64_t lines = (end - begin) * row_bytes / 64;
    return {reinterpret_cast<const char*>(job.x + begin * job.row_stride),
            std::uint32_t(lines * 65536 / steps), 0};
}

// ---- over strips

// One strip of X in its basis: (width) registers; rows past `count` are zero.
template <class T>
void load_strip(const Job<T>& job, std::int64_t row, int count, Vec<T>* strip) {
    constexpr int n = LANES<T>;
    const T* x = job.x + row * job.row_stride;
    if (count == n && job.column_stride == 1) {
        rows_to_strip<T>(x, job.row_stride, job.columns, strip);
    } else if (count == n && job.row_stride == 1) {
        for (std::int64_t j = 0; j < job.columns; ++j) strip[j] = load(x + j * job.column_stride);
    } else {
        for (std::int64_t j = 0; j < job.columns; ++j) {
            strip[j] = Vec<T>{};
            for (int i = 0; i < count; ++i) strip[j][i] = x[i * job.row_stride + j * job.column_stride];
        }
    }
    const Basis<T>& basis = job.basis;
    if (basis.shift) {
        const Vec<T> top = splat<T>(basis.clip);
        for (std::int64_t j = 0; j < job.columns; ++j)
            strip[j] = smallest(largest((strip[j] - basis.shift[j]) * basis.scale[j], -top), top);
    }
    if (basis.constant != 0) strip[job.columns] = splat<T>(basis.constant);
    if (basis.unit_rows) {
        Vec<T> norm{};
        for (std::int64_t j = 0; j < job.width; ++j) norm += rounded(strip[j] * strip[j]);
        for (int i = 0; i < n; ++i) norm[i] = norm[i] > 0 ? T(1) / std::sqrt(norm[i]) : T(1);
        for (std::int64_t j = 0; j < job.width; ++j) strip[j] *= norm;
    }
}

template <class T, int S, int K>
void strips_forward_tile(const Vec<T>* x, std::int64_t width, const T* factors, Vec<T>* z,
                         std::int64_t columns, Prefetch& ahead) {
    Vec<T> acc[S][K] = {};
    Prefetch fetch = ahead;
    for (std::int64_t j = 0; j < width; ++j) {
        fetch.step();
        Vec<T> own[S];
#pragma GCC unroll 8
        for (int s = 0; s < S; ++s) own[s] = x[s * width + j];
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
            const Vec<T> factor = splat<T>(factors[j * K + k]);
#pragma GCC unroll 8
            for (int s = 0; s < S; ++s) acc[s][k] += own[s] * factor;
        }
    }
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s)
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) z[s * columns + k] = acc[s][k];
    ahead = fetch;
}
template <class T, int K = FORWARD_FACTORS>
void strips_forward(int factors_in_tile, const Vec<T>* x, std::int64_t width, const T* factors, Vec<T>* z,
                    std::int64_t columns, Prefetch& ahead) {
    if constexpr (K > 0) {
        if (factors_in_tile == K)
            strips_forward_tile<T, FORWARD_STRIPS, K>(x, width, factors, z, columns, ahead);
        else
            strips_forward<T, K - 1>(factors_in_tile, x, width, factors, z, columns, ahead);
    }
}

template <class T, int K, int J>
void strips_backward_tile(const Vec<T>* x, std::int64_t width, const Vec<T>* slopes, std::int64_t columns,
                          std::int64_t strips, Vec<T>* g, Prefetch& ahead) {
    Vec<T> acc[K][J];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) acc[k][j] = g[k * width + j];
    Prefetch fetch = ahead;
    for (std::int64_t s = 0; s < strips; ++s, x += width, slopes += columns) {
        fetch.step();
        Vec<T> own[K];
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) own[k] = slopes[k];
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) {
            const Vec<T> column = x[j];
#pragma GCC unroll 8
            for (int k = 0; k < K; ++k) acc[k][j] += own[k] * column;
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) g[k * width + j] = acc[k][j];
    ahead = fetch;
}
template <class T, int K = BACKWARD_FACTORS, int J = BACKWARD_COLUMNS>
void strips_backward(int k, int j, const Vec<T>* x, std::int64_t width, const Vec<T>* slopes,
                     std::int64_t columns, std::int64_t strips, Vec<T>* g, Prefetch& ahead) {
    if constexpr (K > 0 && J > 0) {
        if (k == K && j == J)
            strips_backward_tile<T, K, J>(x, width, slopes, columns, strips, g, ahead);
        else if (k == K)
            strips_backward<T, K, J - 1>(k, j, x, width, slopes, columns, strips, g, ahead);
        else
            strips_backward<T, K - 1, J>(k, j, x, width, slopes, columns, strips, g, ahead);
    }
}

// ---- over rows

// Rows of X in their basis, one after the other: (count, width).
template <class T>
void load_rows(const Job<T>& job, std::int64_t row, std::int64_t count, T* rows) {
    const Basis<T>& basis = job.basis;
    for (std::int64_t i = 0; i < count; ++i, rows += job.width) {
        const T* x = job.x + (row + i) * job.row_stride;
        if (basis.shift)
            for (std::int64_t j = 0; j < job.columns; ++j) {
                const T value = (x[j * job.column_stride] - basis.shift[j]) * basis.scale[j];
                rows[j] = value < -basis.clip ? -basis.clip : value > basis.clip ? basis.clip : value;
            }
        else
            for (std::int64_t j = 0; j < job.columns; ++j) rows[j] = x[j * job.column_stride];
        if (basis.constant != 0) rows[job.columns] = basis.constant;
        if (basis.unit_rows) {
            T norm = 0;
            for (std::int64_t j = 0; j < job.width; ++j) norm += rounded(rows[j] * rows[j]);
            const T scale = norm > 0 ? T(1) / std::sqrt(norm) : T(1);
            for (std::int64_t j = 0; j < job.width; ++j) rows[j] *= scale;
        }
    }
}

// A product of matrices: to += from times factors, whose rows are `stride`, `factor_stride` and `to_stride`
// apart.
template <class T>
struct Product {
    const T* from;
    std::int64_t stride;
    const T* factors;
    std::int64_t factor_stride;
    T* to;
    std::int64_t to_stride;

    // From a row of the result, a depth and a column on.
    Product at(std::int64_t row, std::int64_t depth, std::int64_t column) const {
        return {
            from + row * stride + depth,   stride,   factors + depth * factor_stride + column, factor_stride,
            to + row * to_stride + column, to_stride};
    }
};

// B rows by R registers of a product.
template <class T, int B, int R>
void rows_forward_tile(const Product<T>& p, std::int64_t depth, Prefetch& ahead) {
    constexpr int n = LANES<T>;
    ahead.step();
    Vec<T> acc[B][R];
#pragma GCC unroll 24
    for (int b = 0; b < B; ++b)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[b][r] = load(p.to + b * p.to_stride + r * n);
    for (std::int64_t j = 0; j < depth; ++j) {
        Vec<T> own[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) own[r] = load(p.factors + j * p.factor_stride + r * n);
#pragma GCC unroll 24
        for (int b = 0; b < B; ++b) {
            const Vec<T> value = splat<T>(p.from[b * p.stride + j]);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) acc[b][r] += value * own[r];
        }
    }
#pragma GCC unroll 24
    for (int b = 0; b < B; ++b)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) store(p.to + b * p.to_stride + r * n, acc[b][r]);
}
constexpr int rows_at_once(std::int64_t registers) {
    return registers == 1 ? 2 * ROWS_AT_ONCE : ROWS_AT_ONCE;
}
template <class T, int R>
void rows_forward(const Product<T>& p, std::int64_t rows, std::int64_t depth, Prefetch& ahead) {
    constexpr int B = rows_at_once(R);
    std::int64_t b = 0;
    for (; b + B <= rows; b += B) rows_forward_tile<T, B, R>(p.at(b, 0, 0), depth, ahead);
    for (; b < rows; ++b) rows_forward_tile<T, 1, R>(p.at(b, 0, 0), depth, ahead);
}

// `rows` rows by `padded` columns, whole registers.
template <class T>
void multiply_add(const Product<T>& p, std::int64_t rows, std::int64_t depth, std::int64_t padded,
                  Prefetch& ahead) {
    constexpr int n = LANES<T>;
    for (std::int64_t k = 0; k < padded; k += REGISTERS_AT_ONCE * n)
        for (std::int64_t j = 0; j < depth; j += FACTORS_DEPTH) {
            const std::int64_t some = at_most(FACTORS_DEPTH, depth - j);
            switch (at_most(REGISTERS_AT_ONCE, (padded - k) / n)) {
                case 1:
                    rows_forward<T, 1>(p.at(0, j, k), rows, some, ahead);
                    break;
                case 2:
                    rows_forward<T, 2>(p.at(0, j, k), rows, some, ahead);
                    break;
                default:
                    rows_forward<T, 3>(p.at(0, j, k), rows, some, ahead);
            }
        }
}

// gradient (K rows of it, width long) += slopes times x for R registers of columns. The last of them starts
// at column `last`, where it may overlap what has been done already: its lanes before `skip` are not added.
template <class T, int K, int R>
void rows_backward_tile(const T* x, std::int64_t stride, std::int64_t count, const Vec<T>* slopes,
                        std::int64_t columns, T* g, std::int64_t width, std::int64_t last, int skip,
                        Prefetch& ahead) {
    constexpr int n = LANES<T>;
    ahead.step();
    Vec<T> acc[K][R] = {};
    const T* own = reinterpret_cast<const T*>(slopes);
    for (std::int64_t b = 0; b < count; ++b, x += stride) {
        Vec<T> row[R];
#pragma GCC unroll 8
        for (int r = 0; r < R - 1; ++r) row[r] = load(x + r * n);
        row[R - 1] = load(x + last);
        const T* slope = own + (b / n) * columns * n + b % n;
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
            const Vec<T> value = splat<T>(slope[k * n]);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) acc[k][r] += value * row[r];
        }
    }
    const auto fresh = lane_numbers<T>() >= splat<T>(T(skip));
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k, g += width) {
#pragma GCC unroll 8
        for (int r = 0; r < R - 1; ++r) store(g + r * n, load(g + r * n) + acc[k][r]);
        store(g + last, load(g + last) + (fresh ? acc[k][R - 1] : Vec<T>{}));
    }
}
template <class T, int K = ROWS_AT_ONCE>
void rows_backward(int k, int registers, const T* x, std::int64_t stride, std::int64_t count,
                   const Vec<T>* slopes, std::int64_t columns, T* g, std::int64_t width, std::int64_t last,
                   int skip, Prefetch& ahead) {
    if constexpr (K > 0) {
        if (k != K)
            return rows_backward<T, K - 1>(k, registers, x, stride, count, slopes, columns, g, width, last,
                                           skip, ahead);
        switch (registers) {
            case 1:
                return rows_backward_tile<T, K, 1>(x, stride, count, slopes, columns, g, width, last, skip,
                                                   ahead);
            case 2:
                return rows_backward_tile<T, K, 2>(x, stride, count, slopes, columns, g, width, last, skip,
                                                   ahead);
            default:
                return rows_backward_tile<T, K, 3>(x, stride, count, slopes, columns, g, width, last, skip,
                                                   ahead);
        }
    }
}

// ---- a block

// Rows [begin, end) of a chunk, the place of their X, and the lines to fetch meanwhile.
template <class T>
struct Part {
    std::int64_t begin, end, strips;
    const T* x;
    std::int64_t stride;
    Prefetch ahead;
};

template <class T>
void project_strips(const Job<T>& job, const T* packed, const Scratch<T>& s, Part<T>& part) {
    constexpr int n = LANES<T>;
    const std::int64_t columns = job.factor_columns, width = job.width;
    const Tiling sizes(columns, FORWARD_FACTORS);
    for (std::int64_t i = 0; i < part.strips; i += FORWARD_STRIPS) {
        for (std::int64_t own = i; own < at_most(i + FORWARD_STRIPS, part.strips); ++own)
            load_strip<T>(job, part.begin + own * n, int(at_most(n, part.end - part.begin - own * n)),
                          s.x + own * width);
        // Strips past the last one are computed too, from whatever the scratch holds, and not used.
        for (std::int64_t tile = 0, k = 0; tile < sizes.count; k += sizes[tile++])
            strips_forward<T>(int(sizes[tile]), s.x + i * width, width, packed + k * width,
                              s.z + i * columns + k, columns, part.ahead);
    }
}

template <class T>
void project_rows(const Job<T>& job, const T* packed, std::int64_t padded, const Scratch<T>& s,
                  Part<T>& part) {
    constexpr int n = LANES<T>;
    const std::int64_t count = part.end - part.begin;
    std::memset(s.products, 0, std::size_t(part.strips * n * padded) * sizeof(T));
    multiply_add<T>({part.x, part.stride, packed, padded, s.products, padded}, count, job.width, padded,
                    part.ahead);
    for (std::int64_t i = 0; i < part.strips; ++i)  // the next strip overwrites the padding
        rows_to_strip<T>(s.products + i * n * padded, padded, padded, s.z + i * job.factor_columns);
}

template <class T>
void gradient_of_strips(const Job<T>& job, const Scratch<T>& s, Part<T>& part) {
    const std::int64_t columns = job.factor_columns, width = job.width;
    const Tiling sizes(columns, BACKWARD_FACTORS), column_sizes(width, BACKWARD_COLUMNS);
    for (std::int64_t across = 0, j = 0; across < column_sizes.count; j += column_sizes[across++])
        for (std::int64_t tile = 0, k = 0; tile < sizes.count; k += sizes[tile++])
            strips_backward<T>(int(sizes[tile]), int(column_sizes[across]), s.x + j, width, s.z + k, columns,
                               part.strips, s.lanes + k * width + j, part.ahead);
}

template <class T>
void gradient_of_rows(const Job<T>& job, const Scratch<T>& s, Part<T>& part) {
    constexpr int n = LANES<T>;
    const std::int64_t columns = job.factor_columns, width = job.width;
    const Tiling sizes(columns, ROWS_AT_ONCE), registers_of(tiles(width, n), REGISTERS_AT_ONCE);
    for (std::int64_t across = 0, j = 0; across < registers_of.count; j += registers_of[across++] * n) {
        const std::int64_t registers = registers_of[across];
        // The last columns share a register with some that are done.
        const std::int64_t end = (registers - 1) * n, last = at_most(end, width - n - j);
        for (std::int64_t tile = 0, k = 0; tile < sizes.count; k += sizes[tile++])
            rows_backward<T>(int(sizes[tile]), int(registers), part.x + j, part.stride, part.end - part.begin,
                             s.z + k, columns, s.gradient + k * width + j, width, last, int(end - last),
                             part.ahead);
    }
}

// How many times the loops over a block ask for lines of the next one.
template <class T>
std::int64_t prefetch_steps(const Job<T>& job, const Plan<T>& plan) {
    const std::int64_t columns = job.factor_columns, width = job.width;
    const std::int64_t forward =
        plan.in_strips ? tiles(plan.strips, FORWARD_STRIPS) * tiles(columns, FORWARD_FACTORS) * width
                       : tiles(plan.rows, rows_at_once(plan.padded / LANES<T>)) *
                             tiles(width, FACTORS_DEPTH) * tiles(plan.padded, LANES<T> * REGISTERS_AT_ONCE);
    const std::int64_t backward =
        plan.in_strips ? plan.strips * tiles(columns, BACKWARD_FACTORS) * tiles(width, BACKWARD_COLUMNS)
                       : tiles(columns, ROWS_AT_ONCE) * tiles(width, LANES<T> * REGISTERS_AT_ONCE);
    return forward + (job.want == Want::gradient ? backward : 0);
}

// ---- the kernel's functions

template <class T>
std::size_t packed_bytes(const Job<T>& job) {
    return std::size_t(job.width * Plan<T>(job).padded) * sizeof(T);
}

template <class T>
void pack(const Job<T>& job, void* packed) {
    const Plan<T> plan(job);
    const std::int64_t columns = job.factor_columns;
    T* out = static_cast<T*>(packed);
    if (!plan.in_strips) {
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < plan.padded; ++k)
                *out++ = k < columns ? job.factors[j * columns + k] : T(0);
        return;
    }
    const Tiling sizes(columns, FORWARD_FACTORS);
    for (std::int64_t tile = 0, k = 0; tile < sizes.count; k += sizes[tile++])
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t i = k; i < k + sizes[tile]; ++i) *out++ = job.factors[j * columns + i];
}

template <class T>
std::size_t scratch_bytes(const Job<T>& job) {
    return Scratch<T>(job, nullptr, job.indptr32 || job.indptr64).bytes;
}

template <class T>
void dense(const Job<T>& job, const void* packed, void* scratch, std::int64_t begin, std::int64_t end,
           Sums sums) {
    const Plan<T> plan(job);
    const Scratch<T> s(job, scratch, false);
    const std::int64_t size = job.factor_columns * job.width, steps = prefetch_steps(job, plan);
    const T* factors = static_cast<const T*>(packed);
    if (job.want == Want::gradient && plan.in_strips)
        std::memset(s.lanes, 0, std::size_t(size) * sizeof(Vec<T>));
    if (job.want == Want::gradient && !plan.in_strips)
        std::memset(s.gradient, 0, std::size_t(size) * sizeof(T));
    begin_sums<T>(job, s.link);
    for (std::int64_t row = begin; row < end; row += plan.rows) {
        const std::int64_t stop = at_most(row + plan.rows, end), following = at_most(stop + plan.rows, end);
        Part<T> part{row,    stop,      tiles(stop - row, LANES<T>),
                     s.rows, job.width, prefetch_rows(job, stop, following, steps)};
        if (plan.direct) {
            part.x = job.x + row * job.row_stride;
            part.stride = job.row_stride;
        } else if (!plan.in_strips) {
            load_rows<T>(job, row, stop - row, s.rows);
        }
        plan.in_strips ? project_strips<T>(job, factors, s, part)
                       : project_rows<T>(job, factors, plan.padded, s, part);
        link_block<T>(job, s.link, row, stop, s.z, sums);
        if (job.want == Want::gradient)
            plan.in_strips ? gradient_of_strips<T>(job, s, part) : gradient_of_rows<T>(job, s, part);
    }
    end_sums<T>(job, s.link, sums);
}

// total (factor_columns, width) += the gradient that `dense` left in scratch.
template <class T>
void add_gradient(const Job<T>& job, void* scratch, double* total) {
    constexpr int n = LANES<T>;
    const Scratch<T> s(job, scratch, false);
    const std::int64_t size = job.factor_columns * job.width;
    std::int64_t i = 0;
    if (!Plan<T>(job).in_strips) {
        for (; i < size; ++i) total[i] += double(s.gradient[i]);
        return;
    }
    for (; i + n <= size; i += n) {
        Vec<T> square[n];
        for (int lane = 0; lane < n; ++lane) square[lane] = s.lanes[i + lane];
        transpose<T>(square);
        for (int step = n / 2; step > 0; step /= 2)
            for (int lane = 0; lane < step; ++lane) square[lane] += square[lane + step];
        for (int lane = 0; lane < n; ++lane) total[i + lane] += double(square[0][lane]);
    }
    for (; i < size; ++i) total[i] += sum(s.lanes[i]);
}
