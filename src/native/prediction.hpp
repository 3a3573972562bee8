// Outputs of a fitted Tensor Machine for rows as the user has them. Included by kernel.cpp only, inside its
// unnamed namespace.
//
// The projections of a row are a sum over entries: the factors of a place, a state of a column or a column,
// times a weight. Splines take few columns at a time, whose factors then stay in a near cache for many rows.
// All that happens to a row is the same, in the same order, however many others there are; but that states
// with a share of 0 may be left out.

constexpr std::int64_t PREDICTED_AT_ONCE = 256;               // rows
constexpr std::int64_t NEAR_BYTES = 192 << 10;                // of the factors of columns taken together
constexpr int STRIP_ROWS = 8;                                 // whose entries are looked up together
constexpr int SUMMED_AT_ONCE = VECTOR_BYTES == 64 ? 24 : 12;  // registers

// The entries of a row.
template <class T>
struct RowEntries {
    std::int32_t* places;
    T* weights;
    std::int64_t count;

    void add(std::int64_t place, T weight, bool wanted) {  // without a jump
        places[count] = std::int32_t(place);
        weights[count] = weight;
        count += wanted;
    }
};

// Any entry of X that is not a number between knots.
template <class T>
void add_other(const SplineColumns& columns, std::int64_t j, double x, RowEntries<T>& entries) {
    const std::int64_t first = columns.first[j], missing = columns.missing[j],
                       count = columns.first[j + 1] - first - missing;
    std::int64_t state = -1;
    if (x != x)
        state = missing ? count : -1;
    else if (columns.category[j])
        state = x >= 0 && x < double(count) ? std::int64_t(x) : -1;
    else if (count == 1)
        state = 0;
    if (state >= 0) entries.add(first + state, T(1), state != columns.reference[j]);
}

// The shares of column j in `rows` rows; see tensormachines._model.spline_states.
template <class T, int rows>
void add_shares(const SplineColumns& columns, std::int64_t j, const T* x, std::ptrdiff_t stride,
                RowEntries<T>* entries) {
    const std::int64_t first = columns.first[j], reference = columns.reference[j],
                       count = columns.first[j + 1] - first - columns.missing[j];
    double value[rows];
    bool numbers = !columns.category[j] && count > 1;
    for (int i = 0; i < rows; ++i) {
        value[i] = double(x[i * stride]);
        numbers = numbers && value[i] == value[i];
    }
    const double* knots = columns.knots + first;
    const double* below[rows];
    for (int i = 0; i < rows; ++i) below[i] = knots;
    if (!columns.category[j] && count > 1)
        for (std::int64_t length = count - 1; length > 1;) {
            const std::int64_t half = length / 2;
#pragma GCC unroll 8
            for (int i = 0; i < rows; ++i) below[i] += below[i][half] <= value[i] ? half : 0;
            length -= half;
        }
    for (int i = 0; i < rows; ++i) {
        if (!numbers && (columns.category[j] || count < 2 || value[i] != value[i])) {
            add_other(columns, j, value[i], entries[i]);
            continue;
        }
        const double low = 0.5 * below[i][0], high = 0.5 * below[i][1];
        double share = (0.5 * value[i] - low) / (high - low);
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        const std::int64_t state = below[i] - knots;
        const T above = T(share), rest = T(1) - above;
        entries[i].add(first + state, rest, (rest != T(0)) & (state != reference));
        entries[i].add(first + state + 1, above, (above != T(0)) & (state + 1 != reference));
    }
}

template <class T>
void affine_entries(const FittedMachine<T>& machine, const T* x, std::ptrdiff_t stride,
                    RowEntries<T>& entries) {
    const Basis<T>& basis = machine.affine;
    T norm = 0;
    for (std::int64_t j = 0; j < machine.columns; ++j) {
        T value = x[j * stride];
        if (basis.shift) {
            value = (value - basis.shift[j]) * basis.scale[j];
            value = value < -basis.clip ? -basis.clip : value > basis.clip ? basis.clip : value;
        }
        entries.add(j, value, true);
        norm += rounded(value * value);
    }
    if (basis.constant != T(0)) {
        entries.add(machine.columns, basis.constant, true);
        norm += rounded(basis.constant * basis.constant);
    }
    if (!basis.unit_rows || !(norm > 0)) return;
    const T scale = T(1) / std::sqrt(norm);
    for (std::int64_t e = 0; e < entries.count; ++e) entries.weights[e] *= scale;
}

// z (registers of it) += the factors of the entries times their weights
template <class T, int registers>
void add_registers(const T* factors, std::int64_t stride, const RowEntries<T>& entries, T* z) {
    constexpr int n = LANES<T>;
    Vec<T> sum[registers];
#pragma GCC unroll 32
    for (int r = 0; r < registers; ++r) sum[r] = load(z + r * n);
    for (std::int64_t e = 0; e < entries.count; ++e) {
        const Vec<T> weight = splat<T>(entries.weights[e]);
        const T* of_place = factors + entries.places[e] * stride;
#pragma GCC unroll 32
        for (int r = 0; r < registers; ++r) sum[r] += weight * load(of_place + r * n);
    }
#pragma GCC unroll 32
    for (int r = 0; r < registers; ++r) store(z + r * n, sum[r]);
}
template <class T, int registers = SUMMED_AT_ONCE>
void add_some_registers(int wanted, const T* factors, std::int64_t stride, const RowEntries<T>& entries,
                        T* z) {
    if constexpr (registers > 0) {
        if (wanted == registers)
            add_registers<T, registers>(factors, stride, entries, z);
        else
            add_some_registers<T, registers - 1>(wanted, factors, stride, entries, z);
    }
}
template <class T>
void add_entries(const FittedMachine<T>& machine, const RowEntries<T>& entries, T* z) {
    constexpr int n = LANES<T>;
    const std::int64_t all = machine.stride / n, size = all ? tile_size(all, SUMMED_AT_ONCE) : 1;
    for (std::int64_t r = 0; r < all; r += size)
        add_some_registers<T>(int(at_most(size, all - r)), machine.factors + r * n, machine.stride, entries,
                              z + r * n);
}

// The outputs of one row from its projections z, in which the products replace their first factors.
template <class T>
void multiply_projections(const FittedMachine<T>& machine, T* z, T* result) {
    const int outputs = machine.outputs;
    for (int o = 0; o < outputs; ++o) result[o] = machine.bias[o] + z[o];
    z += outputs;
    const std::int64_t* terms = machine.terms;
    const T* weights = machine.weights;
    for (int s = 0; s < machine.sets; ++s)
        for (int p = 2; p <= machine.degree; ++p) {
            const std::int64_t count = *terms++;
            for (int k = 1; k < p; ++k)
                for (std::int64_t i = 0; i < count; ++i) z[i] *= z[k * count + i];
            for (std::int64_t i = 0; weights && i < count; ++i, weights += outputs)
                for (int o = 0; o < outputs; ++o) result[o] += weights[o] * z[i];
            T sum = 0;
            for (std::int64_t i = 0; !weights && i < count; ++i) sum += z[i];
            result[s] += sum;
            z += p * count;
        }
}

// ---- columns of numbers, in many rows

constexpr std::int64_t PAIRED_BYTES = 24 << 10;              // of the factors of columns taken together
constexpr std::int64_t FEWEST_PAIRED = 4, MOST_PAIRED = 16;  // columns, however large their factors are
constexpr int PAIRED_ROWS = 16;                              // that are looked up together
constexpr std::int64_t MOST_COMPARED = 64;                   // knots that each number is compared with
constexpr int PAIRED_REGISTERS = VECTOR_BYTES == 64 ? 28 : 14;

// The states below the numbers of some columns, and the shares of these states and of the next ones:
// (columns, PREDICTED_AT_ONCE).
template <class T>
struct Pairs {
    T *lower, *upper;
    std::int32_t* places;

    static std::int64_t bytes(std::int64_t rows) {
        constexpr std::int64_t each = 2 * sizeof(T) + sizeof(std::int32_t);
        return rows < STRIP_ROWS ? 0 : MOST_PAIRED * PREDICTED_AT_ONCE * each;
    }
    explicit Pairs(char* memory)
        : lower(reinterpret_cast<T*>(memory)), upper(lower + MOST_PAIRED * PREDICTED_AT_ONCE),
          places(reinterpret_cast<std::int32_t*>(upper + MOST_PAIRED * PREDICTED_AT_ONCE)) {}
    Pairs from(std::int64_t place) const {
        Pairs moved = *this;
        moved.lower += place;
        moved.upper += place;
        moved.places += place;
        return moved;
    }
};

// Whether a column has numbers only, each with a share of two states, none of which is left out.
inline bool is_paired(const SplineColumns& columns, std::int64_t j) {
    return !columns.category[j] && columns.reference[j] < 0 &&
           columns.first[j + 1] - columns.first[j] - columns.missing[j] > 1;
}

// The last knot but one, or a knot before it, that is not above each value: 0 for NaN.
inline void count_knots(const double* knots, std::int64_t count, const double* values, std::int64_t* states) {
    constexpr int n = LANES<double>, registers = PAIRED_ROWS / n;
    Vec<double> value[registers];
    typename Index<8>::type below[registers];
    for (int r = 0; r < registers; ++r) {
        value[r] = load(values + r * n);
        below[r] = value[r] < value[r];  // 0
    }
    for (std::int64_t k = 1; k < count - 1; ++k) {
        const Vec<double> knot = splat<double>(knots[k]);
        for (int r = 0; r < registers; ++r) below[r] -= knot <= value[r];
    }
    std::memcpy(states, below, sizeof below);
}
inline void halve_knots(const double* knots, std::int64_t count, const double* values, std::int64_t* states) {
    for (int i = 0; i < PAIRED_ROWS; ++i) states[i] = 0;
    for (std::int64_t length = count - 1; length > 1;) {
        const std::int64_t half = length / 2;
#pragma GCC unroll 16
        for (int i = 0; i < PAIRED_ROWS; ++i) states[i] += knots[states[i] + half] <= values[i] ? half : 0;
        length -= half;
    }
}

// The pairs of column j in `rows` rows, rounded up to PAIRED_ROWS.
template <class T>
void find_pairs(const SplineColumns& columns, std::int64_t j, const T* x, std::ptrdiff_t stride,
                std::int64_t rows, const Pairs<T>& pairs) {
    const std::int64_t first = columns.first[j], missing = columns.missing[j],
                       count = columns.first[j + 1] - first - missing;
    const double* knots = columns.knots + first;
    for (std::int64_t i = 0; i < rows; i += PAIRED_ROWS) {
        double values[PAIRED_ROWS], low[PAIRED_ROWS], high[PAIRED_ROWS];
        std::int64_t states[PAIRED_ROWS];
        bool numbers = true;
        const T* from = x + i * stride;
        const std::int64_t left = rows - i;
        if (left >= PAIRED_ROWS)
            for (int k = 0; k < PAIRED_ROWS; ++k) values[k] = double(from[k * stride]);
        else
            for (int k = 0; k < PAIRED_ROWS; ++k) values[k] = double(from[at_most(k, left - 1) * stride]);
        if (count <= MOST_COMPARED)
            count_knots(knots, count, values, states);
        else
            halve_knots(knots, count, values, states);
        for (int k = 0; k < PAIRED_ROWS; ++k) {
            low[k] = 0.5 * knots[states[k]];
            high[k] = 0.5 * knots[states[k] + 1];
            pairs.places[i + k] = std::int32_t(first + states[k]);
        }
        for (int k = 0; k < PAIRED_ROWS; ++k) {
            double share = (0.5 * values[k] - low[k]) / (high[k] - low[k]);
            share = share < 0 ? 0 : share > 1 ? 1 : share;
            pairs.upper[i + k] = T(share);
            pairs.lower[i + k] = T(1) - T(share);
            numbers = numbers & (values[k] == values[k]);
        }
        for (int k = 0; !numbers && k < PAIRED_ROWS; ++k)
            if (values[k] != values[k]) {
                pairs.places[i + k] = std::int32_t(missing ? first + count : first);
                pairs.upper[i + k] = T(0);
                pairs.lower[i + k] = T(missing);
            }
    }
}

// z (registers of it) += the factors of the pairs of one row, in `columns` columns, times their shares
template <class T, int registers>
void add_pairs(const T* factors, std::int64_t stride, const Pairs<T>& pairs, std::int64_t columns, T* z) {
    constexpr int n = LANES<T>;
    Vec<T> sum[registers];
#pragma GCC unroll 32
    for (int r = 0; r < registers; ++r) sum[r] = load(z + r * n);
    for (std::int64_t c = 0; c < columns * PREDICTED_AT_ONCE; c += PREDICTED_AT_ONCE) {
        const Vec<T> lower = splat<T>(pairs.lower[c]), upper = splat<T>(pairs.upper[c]);
        const T* of_place = factors + std::int64_t(pairs.places[c]) * stride;
#pragma GCC unroll 32
        for (int r = 0; r < registers; ++r) sum[r] += lower * load(of_place + r * n);
#pragma GCC unroll 32
        for (int r = 0; r < registers; ++r) sum[r] += upper * load(of_place + stride + r * n);
    }
#pragma GCC unroll 32
    for (int r = 0; r < registers; ++r) store(z + r * n, sum[r]);
}
template <class T, int registers = PAIRED_REGISTERS>
void add_some_pairs(int wanted, const T* factors, std::int64_t stride, const Pairs<T>& pairs,
                    std::int64_t columns, T* z) {
    if constexpr (registers > 0) {
        if (wanted == registers)
            add_pairs<T, registers>(factors, stride, pairs, columns, z);
        else
            add_some_pairs<T, registers - 1>(wanted, factors, stride, pairs, columns, z);
    }
}

// Adds columns [from, to), all of pairs, to the projections z of `rows` rows.
template <class T>
void add_paired_columns(const FittedMachine<T>& machine, const T* x, std::ptrdiff_t row_stride,
                        std::ptrdiff_t column_stride, std::int64_t rows, std::int64_t from, std::int64_t to,
                        const Pairs<T>& pairs, T* z) {
    constexpr int n = LANES<T>;
    const std::int64_t stride = machine.stride, all = stride / n, size = tile_size(all, PAIRED_REGISTERS);
    for (std::int64_t j = from; j < to; ++j)
        find_pairs<T>(*machine.splines, j, x + j * column_stride, row_stride, rows,
                      pairs.from((j - from) * PREDICTED_AT_ONCE));
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t r = 0; r < all; r += size)
            add_some_pairs<T>(int(at_most(size, all - r)), machine.factors + r * n, stride, pairs.from(i),
                              to - from, z + i * stride + r * n);
}

// ---- many rows

inline std::int64_t entries_bytes(std::int64_t most, std::size_t size) {
    return round_up(most * std::int64_t(sizeof(std::int32_t) + size), 64);
}

// Entries of a row, at most.
template <class T>
std::int64_t most_entries(const FittedMachine<T>& machine) {
    return 2 * machine.columns + 2;  // and one that is written but does not count
}

template <class T>
std::int64_t projection_bytes(const FittedMachine<T>& machine, std::int64_t rows) {
    return round_up(at_most(rows, PREDICTED_AT_ONCE) * machine.stride * std::int64_t(sizeof(T)), 64);
}
template <class T>
std::size_t prediction_bytes(const FittedMachine<T>& machine, std::int64_t rows) {
    return std::size_t(projection_bytes(machine, rows) +
                       at_most(rows, STRIP_ROWS) * entries_bytes(most_entries(machine), sizeof(T)) +
                       Pairs<T>::bytes(rows));
}

// Adds columns [from, to) to the projections z of `rows` rows.
template <class T, int rows>
void add_strip(const FittedMachine<T>& machine, const T* x, std::ptrdiff_t row_stride,
               std::ptrdiff_t column_stride, std::int64_t from, std::int64_t to, char* scratch, T* z) {
    const std::int64_t most = most_entries(machine), bytes = entries_bytes(most, sizeof(T));
    RowEntries<T> entries[rows];
    for (int i = 0; i < rows; ++i) {
        T* weights = reinterpret_cast<T*>(scratch + i * bytes);
        entries[i] = {reinterpret_cast<std::int32_t*>(weights + most), weights, 0};
    }
    if (machine.splines) {
        for (std::int64_t j = from; j < to; ++j)
            add_shares<T, rows>(*machine.splines, j, x + j * column_stride, row_stride, entries);
    } else {
        for (int i = 0; i < rows; ++i) affine_entries(machine, x + i * row_stride, column_stride, entries[i]);
    }
    for (int i = 0; i < rows; ++i) add_entries(machine, entries[i], z + i * machine.stride);
}

// The end of the columns from `from` on, all paired or none of them, whose factors fit into a near cache; or
// of the fewest.
template <class T>
std::int64_t near_columns(const FittedMachine<T>& machine, std::int64_t from) {
    const SplineColumns& columns = *machine.splines;
    const bool paired = is_paired(columns, from);
    const std::int64_t bytes = machine.stride * std::int64_t(sizeof(T)) + 1,
                       states = (paired ? PAIRED_BYTES : NEAR_BYTES) / bytes,
                       fewest = paired ? FEWEST_PAIRED : 1,
                       last = paired ? at_most(machine.columns, from + MOST_PAIRED) : machine.columns;
    std::int64_t to = from + 1;
    while (to < last && is_paired(columns, to) == paired &&
           (to - from < fewest || columns.first[to + 1] - columns.first[from] <= states))
        ++to;
    return to;
}

// x (rows, columns) to result (rows, outputs)
template <class T>
void predict(const FittedMachine<T>& machine, const T* x, std::ptrdiff_t row_stride,
             std::ptrdiff_t column_stride, std::int64_t rows, void* scratch, T* result) {
    const std::int64_t stride = machine.stride;
    T* const z = static_cast<T*>(scratch);
    char* const of_entries = static_cast<char*>(scratch) + projection_bytes(machine, rows);
    const Pairs<T> pairs(of_entries +
                         at_most(rows, STRIP_ROWS) * entries_bytes(most_entries(machine), sizeof(T)));
    for (std::int64_t begin = 0; begin < rows; begin += PREDICTED_AT_ONCE) {
        const std::int64_t count = at_most(rows - begin, PREDICTED_AT_ONCE);
        const T* block = x + begin * row_stride;
        for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t k = 0; k < stride; ++k)
                z[i * stride + k] =
                    machine.splines ? machine.factors[(machine.states - 1) * stride + k] : T(0);
        for (std::int64_t from = 0, to; from < machine.columns; from = to) {
            const bool many = machine.splines && count >= STRIP_ROWS;
            to = many ? near_columns(machine, from) : machine.columns;
            if (many && is_paired(*machine.splines, from)) {
                add_paired_columns<T>(machine, block, row_stride, column_stride, count, from, to, pairs, z);
                continue;
            }
            std::int64_t i = 0;
            for (; i + STRIP_ROWS <= count; i += STRIP_ROWS)
                add_strip<T, STRIP_ROWS>(machine, block + i * row_stride, row_stride, column_stride, from, to,
                                         of_entries, z + i * stride);
            for (; i < count; ++i)
                add_strip<T, 1>(machine, block + i * row_stride, row_stride, column_stride, from, to,
                                of_entries, z + i * stride);
        }
        for (std::int64_t i = 0; i < count; ++i)
            multiply_projections(machine, z + i * stride, result + (begin + i) * machine.outputs);
    }
}
