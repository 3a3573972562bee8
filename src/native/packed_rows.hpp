// A Tensor Machine on packed rows of shares, column by column: see tensormachines._model.packed_shares.
// Included by kernel.cpp only, inside its unnamed namespace.

constexpr int PACKED_REGISTERS = VECTOR_BYTES == 64 ? 12 : 6;  // of a state that are kept at once, and as
                                                               // many of the step to the next

// The runs of a column in a piece, one after the other.
struct Runs {
    const std::uint32_t *run, *end, *entry;

    Runs(const PackedShares& packed, std::int64_t piece, std::int64_t column) {
        const std::int64_t place = piece * packed.columns + column;
        run = packed.runs + packed.first_run[place];
        end = packed.runs + packed.first_run[place + 1];
        entry = packed.entries + packed.first_entry[place];
    }
    bool left() const { return run < end; }
    std::int64_t state() const { return *run >> 16; }
    bool pairs() const { return *run & 0x8000; }
    std::int64_t count() const { return (*run & 0x7fff) + 1; }
    void next() {
        entry += count();
        ++run;
    }
    static std::int64_t row(std::uint32_t entry) { return entry >> 16; }
    template <class T>
    static Vec<T> share(std::uint32_t entry) {
        return splat<T>(T(std::int32_t(entry & 0xffff)) * T(1.0 / 65535));
    }
};

// R registers of projections z, from column k of the factors on: every row begins with the factors of the
// state that all rows are in, and adds those of its states, by its shares.
template <class T, int R>
void packed_project(const Job<T>& job, std::int64_t piece, std::int64_t k, T* z) {
    constexpr int n = LANES<T>;
    const PackedShares& packed = *job.packed;
    const std::int64_t rows = packed.first_row[piece + 1] - packed.first_row[piece], stride = job.stride,
                       z_stride = projection_stride(job);
    Vec<T> own[R], step[R];
    const T* always = job.factors + packed.first_state[packed.columns] * stride + k;
    for (int r = 0; r < R; ++r) own[r] = load(always + r * n);
    for (std::int64_t i = 0; i < rows; ++i)
        for (int r = 0; r < R; ++r) store(z + i * z_stride + k + r * n, own[r]);
    for (std::int64_t c = 0; c < packed.columns; ++c)
        for (Runs runs(packed, piece, c); runs.left(); runs.next()) {
            const T* of_state = job.factors + (packed.first_state[c] + runs.state()) * stride + k;
            const std::int64_t count = runs.count();
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) own[r] = load(of_state + r * n);
            if (!runs.pairs()) {
                for (std::int64_t e = 0; e < count; ++e) {
                    T* to = z + Runs::row(runs.entry[e]) * z_stride + k;
#pragma GCC unroll 12
                    for (int r = 0; r < R; ++r) store(to + r * n, load(to + r * n) + own[r]);
                }
                continue;
            }
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) step[r] = load(of_state + stride + r * n) - own[r];
            for (std::int64_t e = 0; e < count; ++e) {
                const Vec<T> share = Runs::share<T>(runs.entry[e]);
                T* to = z + Runs::row(runs.entry[e]) * z_stride + k;
#pragma GCC unroll 12
                for (int r = 0; r < R; ++r) store(to + r * n, load(to + r * n) + own[r] + share * step[r]);
            }
        }
}

// Adds to R registers of the gradient, from column k of the factors on, what column c of X has of it.
template <class T, int R>
void packed_collect(const Job<T>& job, std::int64_t piece, std::int64_t c, std::int64_t k, const T* slopes,
                    T* gradient) {
    constexpr int n = LANES<T>;
    const PackedShares& packed = *job.packed;
    const std::int64_t stride = job.stride, z_stride = projection_stride(job);
    for (Runs runs(packed, piece, c); runs.left(); runs.next()) {
        T* to = gradient + (packed.first_state[c] + runs.state()) * stride + k;
        const std::int64_t count = runs.count();
        Vec<T> all[R] = {}, above[R] = {};
        if (runs.pairs()) {
            for (std::int64_t e = 0; e < count; ++e) {
                const Vec<T> share = Runs::share<T>(runs.entry[e]);
                const T* from = slopes + Runs::row(runs.entry[e]) * z_stride + k;
#pragma GCC unroll 12
                for (int r = 0; r < R; ++r) {
                    const Vec<T> slope = load(from + r * n);
                    all[r] += slope;
                    above[r] += share * slope;
                }
            }
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) {
                T* next = to + stride + r * n;
                store(next, load(next) + above[r]);
                all[r] -= above[r];
            }
        } else {
            for (std::int64_t e = 0; e < count; ++e) {
                const T* from = slopes + Runs::row(runs.entry[e]) * z_stride + k;
#pragma GCC unroll 12
                for (int r = 0; r < R; ++r) all[r] += load(from + r * n);
            }
        }
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) store(to + r * n, load(to + r * n) + all[r]);
    }
}

// Calls use(number of registers, first column), the former a constant, for registers [from, to) of the
// factors.
template <int R = PACKED_REGISTERS, class Use>
void with_registers(int registers, const Use& use) {
    if constexpr (R > 0) {
        if (registers == R)
            use(std::integral_constant<int, R>{});
        else
            with_registers<R - 1>(registers, use);
    }
}
template <class T, class Use>
void for_registers(std::int64_t from, std::int64_t to, const Use& use) {
    const Tiling sizes(to - from, PACKED_REGISTERS);
    for (std::int64_t tile = 0; tile < sizes.count && from < to; from += sizes[tile++])
        with_registers(int(sizes[tile]), [&](auto registers) { use(registers, from * LANES<T>); });
}

// The projections of the rows of a piece, registers [from, to) of them.
template <class T>
void packed_forward(const Job<T>& job, std::int64_t piece, std::int64_t from, std::int64_t to, T* z) {
    for_registers<T>(from, to, [&](auto registers, std::int64_t k) {
        packed_project<T, decltype(registers)::value>(job, piece, k, z);
    });
}

// What the job wants of rows [begin, end), whose projections are z; slopes replace them.
template <class T>
void packed_rows(const Job<T>& job, void* scratch, std::int64_t begin, std::int64_t end, T* z, Sums sums) {
    constexpr int n = LANES<T>;
    const Scratch<T> s(job, scratch, true);
    const std::int64_t columns = job.factor_columns, z_stride = projection_stride(job);
    begin_sums<T>(job, s.link);
    for (std::int64_t row = begin; row < end; row += n, z += n * z_stride) {
        const int count = int(at_most(n, end - row));
        for (int i = count; i < n; ++i) std::memset(z + i * z_stride, 0, std::size_t(columns) * sizeof(T));
        rows_to_strip<T>(z, z_stride, columns, s.z);
        link_block<T>(job, s.link, row, row + count, s.z, sums);
        if (job.want != Want::gradient) continue;
        for (std::int64_t k = columns; k < job.stride; ++k) s.z[k] = Vec<T>{};
        strip_to_rows<T>(s.z, z_stride, job.stride, count, z);
    }
    end_sums<T>(job, s.link, sums);
}

// Adds to the gradient (states, stride) what columns [first, last) of X have of it, and with the last of them
// the state that every row is in.
template <class T>
void packed_backward(const Job<T>& job, std::int64_t piece, std::int64_t first, std::int64_t last,
                     const T* slopes, T* gradient) {
    constexpr int n = LANES<T>;
    const PackedShares& packed = *job.packed;
    const std::int64_t stride = job.stride, z_stride = projection_stride(job),
                       rows = packed.first_row[piece + 1] - packed.first_row[piece];
    for (std::int64_t c = first; c < last; ++c)
        for_registers<T>(0, stride / n, [&](auto registers, std::int64_t k) {
            packed_collect<T, decltype(registers)::value>(job, piece, c, k, slopes, gradient);
        });
    if (first == last || last < packed.columns) return;
    T* always = gradient + packed.first_state[packed.columns] * stride;
    for_registers<T>(0, stride / n, [&](auto registers, std::int64_t k) {
        constexpr int R = decltype(registers)::value;
        Vec<T> sum[R] = {};
        for (std::int64_t i = 0; i < rows; ++i)
            for (int r = 0; r < R; ++r) sum[r] += load(slopes + i * z_stride + k + r * n);
        for (int r = 0; r < R; ++r) store(always + k + r * n, load(always + k + r * n) + sum[r]);
    });
}
