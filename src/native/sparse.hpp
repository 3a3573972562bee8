// CSR X: a row touches only the factors of its entries. Included by kernel.cpp only, inside its unnamed
// namespace.

template <class T>
struct Entries {
    const Job<T>& job;
    std::int64_t begin(std::int64_t row) const {
        return job.indptr32 ? job.indptr32[row] : job.indptr64[row];
    }
    std::int64_t column(std::int64_t e) const { return job.indices32 ? job.indices32[e] : job.indices64[e]; }
    // What entry e adds to the basis of an all-zero row. Unless something is clipped that is x * scale,
    // without the digits that the difference of two shifted values would lose.
    T value(std::int64_t e, std::int64_t j) const {
        const T x = job.x[e];
        if (!job.basis.shift) return x;
        const T clip = job.basis.clip, scale = job.basis.scale[j], moved = (x - job.basis.shift[j]) * scale,
                zero = -job.basis.shift[j] * scale;
        if (moved >= -clip && moved <= clip && zero >= -clip && zero <= clip) return x * scale;
        const T t = moved < -clip ? -clip : moved > clip ? clip : moved;
        return job.zero_row ? t - job.zero_row[j] : t;
    }
};

constexpr std::int64_t ENTRIES_AHEAD = 32;  // whose factors are fetched meanwhile
constexpr int PROJECTED_AT_ONCE = 8;        // registers of projections of a row

// 1 / norm of each row, from the norm of zero_row and what the entries change.
template <class T>
T row_scale(const Job<T>& job, std::int64_t row, double zero_norm) {
    if (!job.basis.unit_rows) return T(1);
    const Entries<T> entries{job};
    double norm = zero_norm;
    for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
        const std::int64_t j = entries.column(e);
        const double zero = job.zero_row ? double(job.zero_row[j]) : 0.0,
                     change = double(entries.value(e, j));
        norm += change * (change + 2 * zero);
    }
    return norm > 0 ? T(1.0 / std::sqrt(norm)) : T(1);
}

// z = one row times R registers of factors, the first at column k and the last ending at column `end`: two of
// them may overlap.
template <class T, int R>
void sparse_project(const Job<T>& job, std::int64_t row, std::int64_t k, std::int64_t end, T* z) {
    constexpr int n = LANES<T>;
    const Entries<T> entries{job};
    const std::int64_t last = entries.begin(job.rows), columns = job.stride;
    std::int64_t at[R];
    for (int r = 0; r < R; ++r) at[r] = at_most(k + r * n, end - n);
    Vec<T> acc[R] = {};
    for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
        if (e + ENTRIES_AHEAD < last) {
            const T* ahead = job.factors + entries.column(e + ENTRIES_AHEAD) * columns;
            for (const T* line = ahead + k; line < ahead + end - 1; line += 64 / sizeof(T))
                __builtin_prefetch(line);
            __builtin_prefetch(ahead + end - 1);
        }
        const std::int64_t j = entries.column(e);
        const Vec<T> value = splat<T>(entries.value(e, j));
        const T* factors = job.factors + j * columns;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[r] += value * load(factors + at[r]);
    }
    for (int r = 0; r < R; ++r) store(z + at[r], acc[r]);
}
template <class T, int R = PROJECTED_AT_ONCE>
void sparse_project_registers(int registers, const Job<T>& job, std::int64_t row, std::int64_t k,
                              std::int64_t end, T* z) {
    if constexpr (R > 0) {
        if (registers == R)
            sparse_project<T, R>(job, row, k, end, z);
        else
            sparse_project_registers<T, R - 1>(registers, job, row, k, end, z);
    }
}
template <class T>
void sparse_project_row(const Job<T>& job, std::int64_t row, T* z) {
    constexpr int n = LANES<T>;
    const std::int64_t columns = job.stride;
    if (columns < n) {
        const Entries<T> entries{job};
        for (std::int64_t k = 0; k < columns; ++k) z[k] = 0;
        for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
            const std::int64_t j = entries.column(e);
            const T value = entries.value(e, j);
            for (std::int64_t k = 0; k < columns; ++k) z[k] += value * job.factors[j * columns + k];
        }
        return;
    }
    const std::int64_t size = n * tile_size(tiles(columns, n), PROJECTED_AT_ONCE);
    for (std::int64_t k = 0; k < columns; k += size) {
        const std::int64_t end = at_most(columns, k + size);
        sparse_project_registers<T>(int(tiles(end - k, n)), job, row, k, end, z);
    }
}

template <class T>
void sparse_rows(const Job<T>& job, const T* offset, void* scratch, std::int64_t begin, std::int64_t end,
                 T* slopes, double* base_slopes, Sums sums) {
    constexpr int n = LANES<T>;
    const Scratch<T> s(job, scratch, true);
    const std::int64_t columns = job.factor_columns;
    const bool plain = !job.basis.unit_rows && !job.zero_row;  // nothing to add, nothing to divide by
    double zero_norm = 0;
    if (job.basis.unit_rows && job.zero_row)
        for (std::int64_t j = 0; j < job.width; ++j)
            zero_norm += double(job.zero_row[j]) * double(job.zero_row[j]);
    begin_sums<T>(job, s.link);
    for (std::int64_t row = begin; row < end; row += n) {
        const int count = int(at_most(n, end - row));
        T scale[n];
        for (int i = 0; i < n; ++i) {
            T* z = s.rows + i * job.stride;
            scale[i] = i < count ? row_scale<T>(job, row + i, zero_norm) : T(0);
            if (i < count) sparse_project_row<T>(job, row + i, z);
            if (i < count && plain) continue;
            for (std::int64_t k = 0; k < columns; ++k)
                z[k] = i < count ? (z[k] + offset[k]) * scale[i] : T(0);
        }
        rows_to_strip<T>(s.rows, job.stride, columns, s.z);
        link_block<T>(job, s.link, row, row + count, s.z, sums);
        if (job.want != Want::gradient) continue;
        const Vec<T> scales = load(scale);
        for (std::int64_t k = 0; k < columns && !plain; ++k) {
            s.z[k] *= scales;
            base_slopes[k] += sum(s.z[k]);
        }
        for (std::int64_t k = columns; k < job.stride; ++k) s.z[k] = Vec<T>{};
        strip_to_rows<T>(s.z, job.stride, job.stride, count, slopes + (row - begin) * job.stride);
    }
    end_sums<T>(job, s.link, sums);
}

template <class T>
void sparse_columns(const Job<T>& job, std::int64_t begin, std::int64_t end, std::int64_t first,
                    std::int64_t last, const std::int32_t* starts, const std::int32_t* stops, const T* slopes,
                    T* gradient) {
    const Entries<T> entries{job};
    const std::int64_t columns = job.stride, total = entries.begin(job.rows);
    for (std::int64_t row = begin; row < end; ++row, slopes += columns) {
        const std::int64_t of_row = entries.begin(row),
                           stop = stops ? of_row + stops[row] : entries.begin(row + 1);
        for (std::int64_t e = starts ? of_row + starts[row] : of_row; e < stop; ++e) {
            const std::int64_t j = entries.column(e);
            if (j < first || j >= last) continue;
            if (e + ENTRIES_AHEAD < total) {
                const std::int64_t next = entries.column(e + ENTRIES_AHEAD);
                if (next >= first && next < last) {  // fetching what is another thread's would take it away
                    __builtin_prefetch(gradient + next * columns, 1);
                    __builtin_prefetch(gradient + (next + 1) * columns - 1, 1);
                }
            }
            add_multiple<T, LANES<T>>(gradient + j * columns, entries.value(e, j), slopes, columns);
        }
    }
}
