// The interface of the compiled kernel. Plain data only: kernel.cpp is compiled once per instruction set,
// so nothing with linkage (no inline function, no standard container) may be shared between those copies and
// the rest of the extension.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tensormachines {

enum class Loss : int {  // codes as in _model/losses.py
    squared = 0,
    logistic = 1,
    multinomial = 2,
    poisson = 3,
    gamma = 4,
    tweedie = 5,
    absolute = 6,
    quantile = 7,
    huber = 8
};
enum class Want : int { gradient = 0, outputs = 1, terms = 2 };
enum class Model : int { tensor = 0, anova = 1 };  // Tensor Machine, factorization machine

// Input column j becomes clip((x - shift[j]) * scale[j]); then a constant column is appended; then the row is
// divided by its norm.
template <class T>
struct Basis {
    const T* shift;  // null: columns are not changed
    const T* scale;
    T clip;      // infinity: no clipping
    T constant;  // 0: no column is appended
    bool unit_rows;
};

// Rows of shares, sorted: see tensormachines._model.packed_shares. Piece p has rows [first_row[p],
// first_row[p + 1]).
struct PackedShares {
    std::int64_t columns, pieces;
    const std::int64_t *first_state, *first_row;  // (columns + 1), (pieces + 1)
    const std::int64_t *first_entry, *first_run;  // (pieces * columns + 1)
    const std::uint32_t *entries, *runs;
};

// One evaluation. `models` models share the pass over X; each has `outputs` outputs and `columns_of_model`
// columns of `factors`: the linear parts of the outputs, then `sets` sets of terms. A set is, degree by
// degree, the factors of its terms, `rank` columns each; a Tensor Machine has p of them for degree p, a
// factorization machine one. Every output has its own set, whose terms it adds up; or all `share` one set,
// and each output multiplies its terms by weights of its own. The `head` of a model are the biases (outputs),
// then these weights (outputs, terms).
template <class T>
struct Job {
    const T* x;  // dense values (strides in elements), or the values of a CSR matrix
    std::ptrdiff_t row_stride, column_stride;
    const std::int32_t* indptr32;  // CSR when one of the two pairs is set
    const std::int32_t* indices32;
    const std::int64_t* indptr64;
    const std::int64_t* indices64;
    const PackedShares* packed;  // or null
    std::int64_t rows, columns;
    Basis<T> basis;
    const T* zero_row;  // CSR: the basis of an all-zero row (width), without row normalisation

    Model model;
    std::int64_t width;  // columns after the basis
    int degree, rank, outputs, models, sets;
    bool share;
    std::int64_t set_columns, columns_of_model, head_size;
    std::int64_t factor_columns;  // models * columns_of_model
    std::int64_t stride;          // from the factors of a column to those of the next; CSR rows of a Tensor
                                  // Machine may have more than factor_columns, whole registers, padded by 0
    std::int64_t projections;     // of a packed row, if these are more than `stride`: the factors are then
                                  // those of some columns only
    const T* factors;             // (width, stride)
    const T* head;                // (models, head_size)

    Want want;
    Loss loss;
    T parameter;      // of the loss: power, level of the quantile or threshold
    int targets;      // columns of y: the outputs, but 1 for the multinomial loss
    const T* y;       // (rows, targets): numbers, labels 0 and 1, or the number of the class
    const T* weight;  // (rows), null: all 1
    const T* offset;  // (rows, outputs), added to the outputs before losses; null: 0
    T* result;        // outputs: (rows, models * outputs); terms: (rows, models * sets * terms)

    // For a factorization machine, which goes over the entries of each row.
    bool filled;                // an entry for every column: X is dense, or 0 is not 0 in its basis
    std::int64_t most_entries;  // in a row
    std::int64_t last_columns;  // the first of the columns near the end of `factors`
    const T* last_factors;      // the factors of these columns, with room to read past them
};

// The columns of a spline basis. Column j has the states [first[j], first[j + 1]): a number has its knots, in
// order; a category its levels, whose numbers are the entries of X; and both have one more for missing
// entries if `missing[j]`.
struct SplineColumns {
    std::int64_t count;
    const double* knots;            // (states); not read for categories and missing entries
    const std::int64_t* first;      // (count + 1)
    const std::int64_t* reference;  // (count): the state that gets no entry, or -1
    const std::uint8_t* category;   // (count)
    const std::uint8_t* missing;    // (count)
};

// The functions of a number at its states: waves sqrt(2 strength_k) cos(pi k u), k = 1, 2, ..., at its knots,
// whose u are equally spaced; then some others. Less what they are at the reference, if that is not negative.
template <class T>
struct SplineNumber {
    std::int64_t knots, states, waves, n_others, reference;
    const T *even, *odd;  // waves at the lower half of the knots: (half, waves / 2), the half with the knot
                          // in the middle if there is one, and (half, waves - waves / 2)
    const T* others;      // (states, n_others)
    const T *even_transposed, *odd_transposed, *others_transposed;
};

// A fitted Tensor Machine, whose factors no longer change. Terms with a factor of zeros are left out: set s
// has terms[s * (degree - 1) + p - 2] terms of degree p.
template <class T>
struct FittedMachine {
    const SplineColumns* splines;  // null: the basis is affine
    Basis<T> affine;
    std::int64_t columns;  // of X
    int degree, outputs, sets;
    const std::int64_t* terms;  // (sets, degree - 1)
    const T* factors;           // (states or columns in the basis, stride): the linear parts of the outputs,
                                // then the terms by set, degree, place
    std::int64_t stride;        // whole registers
    std::int64_t states;        // of a spline basis; the last is the one that every row is in
    const T* bias;              // (outputs)
    const T* weights;           // (terms, outputs) if the outputs share one set, else null
};

// One step of Adam: mean and square move towards the gradient and its square, params by
//     -rate * mean / (sqrt(square * correction) + smallest),
// and params below `negligible` become 0, before products of them become denormal numbers. The gradient is
// `scale` times the one given, and that of the penalty alpha / 2 * strength * point^2.
template <class T>
struct AdamStep {
    T momentum, memory, rate, correction, smallest, negligible, scale, alpha;
};
// The point is params * units. A null strength or unit is 1.
template <class T>
struct AdamVectors {
    T *params, *mean, *square;
    const T *strength, *units;
};
struct AdamSums {
    double penalty;  // sum of strength * point^2, before the step
    double largest;  // absolute value of the gradient with respect to params; not finite if one is not
};

namespace {  // a copy for each instruction set
inline double larger(double a, double b) { return a >= b || a != a ? a : b; }  // NaN if either is

// From the projections of a packed row to those of the next: whole cache lines, so that threads that have
// some registers each do not write to the same ones.
template <class T>
inline std::int64_t projection_stride(const Job<T>& job) {
    constexpr std::int64_t line = 64 / sizeof(T);
    const std::int64_t numbers = job.projections > job.stride ? job.projections : job.stride;
    return (numbers + line - 1) / line * line;
}

template <class T>
inline std::int64_t entries_before(const Job<T>& job, std::int64_t row) {
    return job.filled ? row * job.width : job.indptr32 ? job.indptr32[row] : job.indptr64[row];
}
}  // namespace

// Sums over rows. Everything that adds up over the whole data is float64.
struct Sums {
    double* value;  // (models)
    double* head;   // (models, head_size)
};

template <class T>
struct Kernel {
    // Dense: `packed` holds the factors rearranged, once per call; `scratch` belongs to one thread. A chunk
    // of rows leaves its part of the gradient in scratch, which add_gradient moves into a float64 total of
    // shape (factor_columns, width).
    std::size_t (*packed_bytes)(const Job<T>&);
    void (*pack)(const Job<T>&, void* packed);
    std::size_t (*scratch_bytes)(const Job<T>&);
    void (*dense)(const Job<T>&, const void* packed, void* scratch, std::int64_t begin, std::int64_t end,
                  Sums);
    void (*add_gradient)(const Job<T>&, void* scratch, double* total);

    // CSR, in two halves so that threads share the rows of the first and the columns of the second. offset
    // (factor_columns) is zero_row times factors. slopes (end - begin, stride) are the derivatives with
    // respect to the projections of each row, base_slopes (factor_columns) their sum, which belongs to
    // zero_row. gradient is (width, stride). starts and stops (rows), where they are known, tell how many
    // entries of a row are before the first and before the last of the columns.
    void (*sparse_rows)(const Job<T>&, const T* offset, void* scratch, std::int64_t begin, std::int64_t end,
                        T* slopes, double* base_slopes, Sums);
    void (*sparse_columns)(const Job<T>&, std::int64_t begin, std::int64_t end, std::int64_t first,
                           std::int64_t last, const std::int32_t* starts, const std::int32_t* stops,
                           const T* slopes, T* gradient);

    // Packed rows, piece by piece: threads share registers of factors, then rows, then columns of X. Rows of
    // projections z and slopes are `projection_stride` apart.
    void (*packed_forward)(const Job<T>&, std::int64_t piece, std::int64_t from, std::int64_t to, T* z);
    void (*packed_rows)(const Job<T>&, void* scratch, std::int64_t begin, std::int64_t end, T* z, Sums);
    void (*packed_backward)(const Job<T>&, std::int64_t piece, std::int64_t first, std::int64_t last,
                            const T* slopes, T* gradient);

    // A factorization machine, in two halves too. slopes is (entries of the rows, anova_stride): the
    // derivatives with respect to the factors that each entry meets.
    std::int64_t (*anova_stride)(const Job<T>&);
    std::size_t (*anova_scratch_bytes)(const Job<T>&);
    void (*anova_rows)(const Job<T>&, void* scratch, std::int64_t begin, std::int64_t end, T* slopes, Sums);
    void (*anova_columns)(const Job<T>&, std::int64_t begin, std::int64_t end, std::int64_t first,
                          std::int64_t last, const T* slopes, T* gradient);

    // See spline_products.hpp. `padded` is a multiple of `lanes`.
    int lanes;
    void (*spread_number)(const SplineNumber<T>&, const T* factors, std::int64_t padded, T* states);
    void (*gather_number)(const SplineNumber<T>&, T* states, std::int64_t padded, T* factors);

    // See prediction.hpp.
    std::size_t (*prediction_bytes)(const FittedMachine<T>&, std::int64_t rows);
    void (*predict)(const FittedMachine<T>&, const T* x, std::ptrdiff_t row_stride,
                    std::ptrdiff_t column_stride, std::int64_t rows, void* scratch, T* result);

    // See minibatch/adam.hpp. Writes the next point, if there are units.
    AdamSums (*adam_step)(std::int64_t size, const AdamVectors<T>&, const T* gradient, T* point,
                          const AdamStep<T>&);
    // The same for vectors that are matrices (rows, columns). Adds to the penalty of each column, and returns
    // the largest entry of the gradient.
    double (*adam_rows)(std::int64_t rows, std::int64_t columns, const AdamVectors<T>&, const T* gradient,
                        T* point, const AdamStep<T>&, T* penalties);
};

}  // namespace tensormachines
