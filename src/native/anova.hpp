// Factorization machines: rows to outputs, losses and slopes, entry by entry. Included by kernel.cpp only,
// inside its unnamed namespace.
//
// The term of degree p and factor v is the elementary symmetric polynomial of the numbers u_t = v_t x_t of a
// row,
//     A_p = sum over t1 < ... < tp of u_t1 ... u_tp,    which grows entry by entry:  A_p += u_t A_{p-1}.
// Its derivative with respect to u_t is A_{p-1} of all entries but t, the sum over l of A_l of those before t
// times A_{p-1-l} of those after it: nothing is subtracted or divided. A register holds LANES of the `rank`
// terms; lanes past the rank are computed too, and never used.

// Rows may be short: their work must not cost a call, nor make the compiler read the job again.
#define INLINE inline __attribute__((always_inline))

template <class T>
struct Entry {
    T value;
    const T* factors;  // (factor_columns) of its column
};

template <class T>
std::int64_t rank_tiles(const Job<T>& job) {
    return tiles(job.rank, LANES<T>);
}
// Registers that the forward pass over an entry of a row keeps for the backward pass.
template <class T>
std::int64_t kept_registers(const Job<T>& job) {
    return job.models * job.sets * rank_tiles(job) * (std::int64_t(job.degree) * (job.degree - 1) / 2);
}
// The last register that is stored in the slopes of an entry may reach past its columns.
template <class T>
std::int64_t anova_stride(const Job<T>& job) {
    return job.factor_columns + rank_tiles(job) * LANES<T> - job.rank;
}

template <class T>
struct AnovaScratch {
    Link<T> link;
    Vec<T>* partial;  // (degree): the polynomials of the entries so far
    Vec<T>* sums;  // (models * sets, LANES): for each row of a strip a register with the sum of its terms,
                   // still to be summed over lanes
    T* linear;     // (models * outputs, LANES)
    T* terms;      // shared: (LANES, models * terms), the terms of a strip, then their slopes
    Vec<T> within_rank;  // 1 in those lanes of the last register
    Vec<T>* kept;        // (LANES, most_entries, kept_registers)
    Entry<T>* entries;   // (LANES, most_entries)
    std::int64_t counts[LANES<T>];
    std::size_t bytes;

    AnovaScratch(const Job<T>& job, void* start) {
        Arena arena{static_cast<char*>(start)};
        link.take(arena, job, 1);
        partial = arena.take<Vec<T>>(job.degree);
        sums = arena.take<Vec<T>>(job.models * job.sets * LANES<T>);
        linear = arena.take<T>(job.models * job.outputs * LANES<T>);
        terms = arena.take<T>(job.share ? LANES<T> * (job.models * term_count(job) + 1) : 0);
        within_rank = count_lanes<T>(job.rank % LANES<T>);
        kept = arena.take<Vec<T>>(
            job.want == Want::gradient ? LANES<T> * job.most_entries * kept_registers(job) : 0);
        entries = arena.take<Entry<T>>(LANES<T> * job.most_entries);
        bytes = arena.used;
    }
};
template <class T>
std::size_t anova_scratch_bytes(const Job<T>& job) {
    return AnovaScratch<T>(job, nullptr).bytes;
}

// ---- the entries of a row in its basis: read from X if the basis changes nothing, else computed first

// The factors of a column; a whole register can be read past their end.
template <class T>
INLINE const T* factors_of(const Job<T>& job, std::int64_t j) {
    const std::int64_t near_end = j - job.last_columns;
    return near_end < 0 ? job.factors + j * job.factor_columns
                        : job.last_factors + near_end * job.factor_columns;
}

template <class T, class Index>
struct RawRow {
    const T* x;
    const Index* columns;
    const Job<T>& job;
    INLINE T value(std::int64_t t) const { return x[t]; }
    INLINE const T* factors(std::int64_t t) const { return factors_of(job, columns[t]); }
};
template <class T>
struct LoadedRow {
    const Entry<T>* entries;
    INLINE T value(std::int64_t t) const { return entries[t].value; }
    INLINE const T* factors(std::int64_t t) const { return entries[t].factors; }
};

template <class T>
INLINE std::int64_t fill_dense(const Job<T>& job, std::int64_t row, Entry<T>* entries) {
    const T* x = job.x + row * job.row_stride;
    const Basis<T>& basis = job.basis;
    for (std::int64_t j = 0; j < job.columns; ++j) {
        T value = x[j * job.column_stride];
        if (basis.shift) {
            value = (value - basis.shift[j]) * basis.scale[j];
            value = value < -basis.clip ? -basis.clip : value > basis.clip ? basis.clip : value;
        }
        entries[j].value = value;
    }
    if (basis.constant != T(0)) entries[job.columns].value = basis.constant;
    return job.width;
}
template <class T>
INLINE std::int64_t fill_sparse(const Job<T>& job, std::int64_t row, Entry<T>* own) {
    const Entries<T> entries{job};
    const std::int64_t begin = entries.begin(row), end = entries.begin(row + 1);
    if (!job.zero_row) {
        for (std::int64_t e = begin; e < end; ++e) own[e - begin].value = entries.value(e, entries.column(e));
        return end - begin;
    }
    for (std::int64_t j = 0; j < job.width; ++j) own[j].value = job.zero_row[j];
    for (std::int64_t e = begin; e < end; ++e)
        own[entries.column(e)].value += entries.value(e, entries.column(e));
    return job.width;
}
template <class T>
INLINE std::int64_t load_entries(const Job<T>& job, std::int64_t row, Entry<T>* own) {
    const bool dense = !(job.indptr32 || job.indptr64);
    const std::int64_t count = dense ? fill_dense(job, row, own) : fill_sparse(job, row, own);
    const Entries<T> entries{job};
    const std::int64_t begin = job.filled ? 0 : entries.begin(row);
    for (std::int64_t t = 0; t < count; ++t) {
        own[t].factors = factors_of(job, job.filled ? t : entries.column(begin + t));
    }
    if (!job.basis.unit_rows) return count;
    double norm = 0;
    for (std::int64_t t = 0; t < count; ++t) norm += double(own[t].value) * double(own[t].value);
    const T scale = norm > 0 ? T(1 / std::sqrt(norm)) : T(1);
    for (std::int64_t t = 0; t < count; ++t) own[t].value *= scale;
    return count;
}

// ---- one register of terms. P is the degree where the compiler is to know it, else 0.

// The terms of degree p; `kept`, where wanted, gets for every entry A_1 ... A_{p-1} of those before it.
template <class T, int P, class Row>
INLINE Vec<T> anova_forward(const Row& row, std::int64_t count, std::int64_t column, int p, Vec<T>* any,
                            Vec<T>* kept) {
    Vec<T> few[P ? P : 1] = {};
    Vec<T>* polynomial = P ? few : any;
    if (P) p = P;
    for (int l = 0; l < p; ++l) polynomial[l] = Vec<T>{};
    for (std::int64_t t = 0; t < count; ++t) {
        const Vec<T> u = splat<T>(row.value(t)) * load(row.factors(t) + column);
        if (kept) {
#pragma GCC unroll 8
            for (int l = 0; l + 1 < p; ++l) kept[l] = polynomial[l];
            kept += p - 1;
        }
#pragma GCC unroll 8
        for (int l = p - 1; l > 0; --l) polynomial[l] += u * polynomial[l - 1];
        polynomial[0] += u;
    }
    return polynomial[p - 1];
}

// The derivatives of slope times these terms with respect to the factors of every entry, `stride` apart.
template <class T, int P, class Row>
INLINE void anova_backward(const Row& row, std::int64_t count, std::int64_t column, int p, Vec<T>* any,
                           const Vec<T>* kept, Vec<T> slope, T* slopes, std::int64_t stride) {
    Vec<T> few[P ? P : 1] = {};
    Vec<T>* behind = P ? few : any;  // slope times 1, A_1, ... A_{p-1} of the entries after t
    if (P) p = P;
    behind[0] = slope;
    for (int l = 1; l < p; ++l) behind[l] = Vec<T>{};
    for (std::int64_t t = count - 1; t >= 0; --t) {
        const Vec<T> value = splat<T>(row.value(t)), u = value * load(row.factors(t) + column);
        const Vec<T>* before = kept + t * (p - 1);
        Vec<T> others = behind[p - 1];
#pragma GCC unroll 8
        for (int l = 0; l + 1 < p; ++l) others += before[l] * behind[p - 2 - l];
        store(slopes + t * stride, value * others);
#pragma GCC unroll 8
        for (int l = p - 1; l > 0; --l) behind[l] += u * behind[l - 1];
    }
}

// The same out of line, for degrees that are rare: inlined, all degrees would take longer to compile than the
// rest of the kernel.
template <class T, int P, class Row>
__attribute__((noinline)) Vec<T> rare_forward(const Row& row, std::int64_t count, std::int64_t column, int p,
                                              Vec<T>* any, Vec<T>* kept) {
    return anova_forward<T, P>(row, count, column, p, any, kept);
}
template <class T, int P, class Row>
__attribute__((noinline)) void rare_backward(const Row& row, std::int64_t count, std::int64_t column, int p,
                                             Vec<T>* any, const Vec<T>* kept, Vec<T> slope, T* slopes,
                                             std::int64_t stride) {
    anova_backward<T, P>(row, count, column, p, any, kept, slope, slopes, stride);
}

#define BY_DEGREE(frequent, rare, ...)   \
    switch (p) {                         \
        case 2:                          \
            frequent<T, 2>(__VA_ARGS__); \
            break;                       \
        case 3:                          \
            frequent<T, 3>(__VA_ARGS__); \
            break;                       \
        case 4:                          \
            rare<T, 4>(__VA_ARGS__);     \
            break;                       \
        case 5:                          \
            rare<T, 5>(__VA_ARGS__);     \
            break;                       \
        case 6:                          \
            rare<T, 6>(__VA_ARGS__);     \
            break;                       \
        default:                         \
            rare<T, 0>(__VA_ARGS__);     \
    }

// ---- one row

// Linear part of an output of a row, whose factors are in `column`.
template <class T, class Row>
INLINE T anova_linear(T bias, std::int64_t column, const Row& row, std::int64_t count) {
    T f = bias;
    for (std::int64_t t = 0; t < count; ++t) f += row.value(t) * row.factors(t)[column];
    return f;
}
// The sum of the terms of a set of a row, whose factors are from `column` on; `kept` and written where
// wanted.
template <class T, class Row>
INLINE Vec<T> anova_terms(const Job<T>& job, const AnovaScratch<T>& s, std::int64_t column, const Row& row,
                          std::int64_t count, Vec<T>*& kept, T* terms) {
    constexpr int n = LANES<T>;
    Vec<T> total{}, of_last{};
    for (int p = 2; p <= job.degree; ++p)
        for (int i = 0; i < job.rank; i += n) {
            const int lanes = int(at_most(n, job.rank - i));
            Vec<T> product;
            BY_DEGREE(product = anova_forward, product = rare_forward, row, count, column, p, s.partial, kept)
            if (kept) kept += count * (p - 1);
            (lanes == n ? total : of_last) += product;
            if (terms) {
                T each[n];
                store(each, product);
                std::memcpy(terms, each, lanes * sizeof(T));
                terms += lanes;
            }
            column += lanes;
        }
    return total + (s.within_rank == Vec<T>{} ? Vec<T>{} : of_last);
}

// The slopes of the factors of a set, from the slope of its terms, or from one a term.
template <class T, class Row>
INLINE void anova_slopes(const Job<T>& job, const AnovaScratch<T>& s, std::int64_t column, const Row& row,
                         std::int64_t count, const Vec<T>*& kept, T slope, const T* of_terms, T* slopes) {
    constexpr int n = LANES<T>;
    const std::int64_t stride = anova_stride(job);
    for (int p = 2; p <= job.degree; ++p)
        for (int i = 0; i < job.rank; i += n) {
            const Vec<T> own = of_terms ? load(of_terms) : splat<T>(slope);
            BY_DEGREE(anova_backward, rare_backward, row, count, column, p, s.partial, kept, own,
                      slopes + column, stride)
            kept += count * (p - 1);
            const std::int64_t lanes = at_most(n, job.rank - i);
            column += lanes;
            if (of_terms) of_terms += lanes;
        }
}

// ---- many rows

// The outputs of a strip; 0 past its last row.
template <class T>
INLINE Vec<T> strip_outputs(const T* linear, const Vec<T>* terms, int rows) {
    constexpr int n = LANES<T>;
    Vec<T> square[n], f = load_lanes(linear, 1, rows);
    for (int i = 0; i < n; ++i) square[i] = i < rows ? terms[i] : Vec<T>{};
    transpose<T>(square);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) f += square[i];
    return f;
}

// The first pass over row i of a strip: its linear parts and terms.
template <class T, class Row>
INLINE void anova_row(const Job<T>& job, AnovaScratch<T>& s, int i, const Row& row, std::int64_t count,
                      Vec<T>* kept, T* terms) {
    constexpr int n = LANES<T>;
    for (int m = 0; m < job.models; ++m) {
        const std::int64_t first = m * job.columns_of_model;
        for (int o = 0; o < job.outputs; ++o)
            s.linear[(m * job.outputs + o) * n + i] =
                anova_linear<T>(job.head[m * job.head_size + o], first + o, row, count);
        for (int set = 0; set < job.sets; ++set) {
            const std::int64_t column = first + job.outputs + set * job.set_columns;
            s.sums[(m * job.sets + set) * n + i] =
                anova_terms<T>(job, s, column, row, count, kept, terms);
            if (terms) terms += term_count(job);
        }
    }
}

// The outputs of a strip, from what the first pass left.
template <class T>
INLINE void anova_outputs(const Job<T>& job, AnovaScratch<T>& s, int rows) {
    constexpr int n = LANES<T>;
    const std::int64_t terms = term_count(job), all_terms = job.models * terms;
    if (!job.share) {
        for (int k = 0; k < job.models * job.outputs; ++k)
            s.link.f[k] = strip_outputs<T>(s.linear + k * n, s.sums + k * n, rows);
        return;
    }
    for (std::int64_t t = rows * all_terms; t < n * all_terms; ++t) s.terms[t] = 0;
    rows_to_strip<T>(s.terms, all_terms, all_terms, s.link.terms);
    for (int m = 0; m < job.models; ++m) {
        Vec<T>* f = s.link.f + m * job.outputs;
        for (int o = 0; o < job.outputs; ++o)
            f[o] = load_lanes(s.linear + (m * job.outputs + o) * n, 1, rows);
        all_weighted_sums<T>(job.head + m * job.head_size + job.outputs, terms, 1, s.link.terms + m * terms,
                             terms, job.outputs, f);
    }
}

// The slopes of shared terms, row by row in place of the terms; adds to the sums of the weights.
template <class T>
void anova_term_slopes(const Job<T>& job, AnovaScratch<T>& s) {
    constexpr int n = LANES<T>;
    const std::int64_t terms = term_count(job);
    for (int m = 0; m < job.models; ++m) {
        weight_slopes<T>(job, s.link, m, s.link.f + m * job.outputs, s.link.terms + m * terms);
        for (std::int64_t t = 0; t < terms; ++t) s.link.terms[m * terms + t] = s.link.term_slopes[t];
    }
    strip_to_rows<T>(s.link.terms, job.models * terms, job.models * terms, n, s.terms);
}

// The second pass over row i of a strip: the slopes of its factors.
template <class T, class Row>
INLINE void anova_row_slopes(const Job<T>& job, AnovaScratch<T>& s, int i, const Row& row,
                             const Vec<T>* kept, T* slopes) {
    const std::int64_t stride = anova_stride(job), terms = term_count(job);
    for (int m = 0; m < job.models; ++m) {
        const std::int64_t first = m * job.columns_of_model;
        const Vec<T>* f = s.link.f + m * job.outputs;
        for (std::int64_t t = 0; t < s.counts[i]; ++t)
            for (int o = 0; o < job.outputs; ++o) slopes[t * stride + first + o] = f[o][i] * row.value(t);
        for (int set = 0; set < job.sets; ++set)
            anova_slopes<T>(job, s, first + job.outputs + set * job.set_columns, row, s.counts[i], kept,
                            f[set][i], job.share ? s.terms + (i * job.models + m) * terms : nullptr, slopes);
    }
}

template <class T, class RowOf>
INLINE void anova_strips(const Job<T>& job, AnovaScratch<T>& s, std::int64_t begin, std::int64_t end,
                         T* slopes, Sums sums, RowOf row_of) {
    constexpr int n = LANES<T>;
    const int outputs = job.models * job.outputs;
    const bool with_gradient = job.want == Want::gradient;
    const std::int64_t stride = anova_stride(job), kept_of_row = job.most_entries * kept_registers(job),
                       all_terms = job.models * job.sets * term_count(job);
    begin_sums<T>(job, s.link);
    for (std::int64_t first = begin; first < end; first += n) {
        const int rows = int(at_most(n, end - first));
        for (int i = 0; i < rows; ++i) {
            const bool absent =
                with_gradient && job.weight && job.weight[first + i] == 0;  // even where its terms overflow
            const std::int64_t count =
                absent ? 0 : entries_before(job, first + i + 1) - entries_before(job, first + i);
            s.counts[i] = count;
            anova_row<T>(job, s, i, row_of(first + i, i, count), count,
                         with_gradient ? s.kept + i * kept_of_row : nullptr,
                         job.want == Want::terms ? job.result + (first + i) * all_terms
                         : job.share             ? s.terms + i * all_terms
                                                 : nullptr);
        }
        if (job.want == Want::terms) continue;
        anova_outputs<T>(job, s, rows);
        if (job.want == Want::outputs)
            strip_to_rows<T>(s.link.f, outputs, outputs, rows, job.result + first * outputs);
        if (!with_gradient) continue;
        block_losses<T>(job, s.link, first, first + rows, sums);
        if (job.share) anova_term_slopes<T>(job, s);
        for (int i = 0; i < rows; ++i) {
            const std::int64_t own = entries_before(job, first + i + 1) - entries_before(job, first + i);
            anova_row_slopes<T>(job, s, i, row_of(first + i, i, 0), s.kept + i * kept_of_row, slopes);
            if (!s.counts[i]) std::memset(slopes, 0, std::size_t(own * stride) * sizeof(T));
            slopes += own * stride;
        }
    }
    end_sums<T>(job, s.link, sums);
}

template <class T>
void anova_rows(const Job<T>& given, void* scratch, std::int64_t begin, std::int64_t end, T* slopes,
                Sums sums) {
    const Job<T> job = given;  // a copy, which no store can change
    AnovaScratch<T> s(job, scratch);
    const bool raw = !job.filled && !job.basis.shift && !job.basis.unit_rows;
    if (raw && job.indptr32)
        anova_strips<T>(job, s, begin, end, slopes, sums, [&](std::int64_t row, int, std::int64_t) {
            return RawRow<T, std::int32_t>{job.x + job.indptr32[row], job.indices32 + job.indptr32[row], job};
        });
    else
        anova_strips<T>(job, s, begin, end, slopes, sums, [&](std::int64_t row, int i, std::int64_t count) {
            Entry<T>* entries = s.entries + i * job.most_entries;
            if (count) load_entries(job, row, entries);
            return LoadedRow<T>{entries};
        });
}

template <class T>
void anova_columns(const Job<T>& job, std::int64_t begin, std::int64_t end, std::int64_t first,
                   std::int64_t last, const T* slopes, T* gradient) {
    const Entries<T> entries{job};
    const std::int64_t columns = job.factor_columns, stride = anova_stride(job);
    auto add = [&](std::int64_t j, const T* from) {
        add_multiple<T, LANES<T>>(gradient + j * columns, T(1), from, columns);
    };
    if (job.filled) {
        for (std::int64_t row = begin; row < end; ++row, slopes += job.width * stride)
            for (std::int64_t j = first; j < last; ++j) add(j, slopes + j * stride);
        return;
    }
    const std::int64_t stop = entries_before(job, end);
    for (std::int64_t e = entries_before(job, begin); e < stop; ++e, slopes += stride) {
        if (e + ENTRIES_AHEAD < stop)
            __builtin_prefetch(gradient + entries.column(e + ENTRIES_AHEAD) * columns, 1);
        const std::int64_t j = entries.column(e);
        if (j >= first && j < last) add(j, slopes);
    }
}
