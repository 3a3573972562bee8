// The interface of the compiled kernel. Plain data only: kernel.cpp is compiled once per instruction set,
// so nothing with linkage (no inline function, no standard container) may be shared between those copies and
// the rest of the extension.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tensormachines {

enum class Loss : int { squared = 0, logistic = 1, multinomial = 2 };  // codes as in _model/losses.py
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

// One evaluation. Every output owns `projections` columns of `factors`: the linear part, then degree by
// degree the factors, `rank` columns each; a Tensor Machine has p of them for degree p, a factorization
// machine one. A model has `outputs` outputs; `models` of them share the pass over X.
template <class T>
struct Job {
    const T* x;  // dense values (strides in elements), or the values of a CSR matrix
    std::ptrdiff_t row_stride, column_stride;
    const std::int32_t* indptr32;  // CSR when one of the two pairs is set
    const std::int32_t* indices32;
    const std::int64_t* indptr64;
    const std::int64_t* indices64;
    std::int64_t rows, columns;
    Basis<T> basis;
    const T* zero_row;  // CSR: the basis of an all-zero row (width), without row normalisation

    Model model;
    std::int64_t width;  // columns after the basis
    int degree, rank, outputs, models;
    std::int64_t projections;
    std::int64_t factor_columns;  // projections * outputs * models
    std::int64_t stride;          // from the factors of a column to those of the next; CSR rows of a Tensor
                                  // Machine may have more than factor_columns, whole registers, padded by 0
    const T* factors;             // (width, stride)
    const T* bias;                // (models * outputs)

    Want want;
    Loss loss;
    int targets;      // columns of y: the outputs of numbers, 1 for classes
    const T* y;       // (rows, targets): numbers, or the number of the class
    const T* weight;  // (rows), null: all 1
    T* result;        // outputs: (rows, models * outputs); terms: (rows, models * outputs * terms)

    // For a factorization machine, which goes over the entries of each row.
    bool filled;                // an entry for every column: X is dense, or 0 is not 0 in its basis
    std::int64_t most_entries;  // in a row
    std::int64_t last_columns;  // the first of the columns near the end of `factors`
    const T* last_factors;      // the factors of these columns, with room to read past them
};

// The columns of a spline basis. Column j has the states [first[j], first[j + 1]): a number has its knots, in
// order; a category its levels, whose numbers are the entries of X; and both have one more for missing entries
// if `missing[j]`.
struct SplineColumns {
    std::int64_t count;
    const double* knots;            // (states); not read for categories and missing entries
    const std::int64_t* first;      // (count + 1)
    const std::int64_t* reference;  // (count): the state that gets no entry, or -1
    const std::uint8_t* category;   // (count)
    const std::uint8_t* missing;    // (count)
};

// A fitted Tensor Machine, whose factors no longer change. Terms with a factor of zeros are left out: output o
// has terms[o * degree + p - 1] terms of degree p, the linear part being the one of degree 1.
template <class T>
struct FittedMachine {
    const SplineColumns* splines;  // null: the basis is affine
    Basis<T> affine;
    std::int64_t columns;  // of X
    int degree, outputs;
    const std::int64_t* terms;  // (outputs, degree)
    const T* factors;           // (states or columns in the basis, stride): by output, degree, place, term
    std::int64_t stride;        // whole registers
    std::int64_t states;        // of a spline basis; the last is the one that every row is in
    const T* bias;              // (outputs)
};

// One step of Adam: mean and square move towards the gradient and its square, params by
//     -rate * mean / (sqrt(square * correction) + smallest),
// and params below `negligible` become 0, before products of them become denormal numbers.
template <class T>
struct AdamStep {
    T momentum, memory, rate, correction, smallest, negligible;
};

namespace {  // a copy for each instruction set
inline bool has_classes(Loss loss) { return loss == Loss::logistic || loss == Loss::multinomial; }

template <class T>
inline std::int64_t entries_before(const Job<T>& job, std::int64_t row) {
    return job.filled ? row * job.width : job.indptr32 ? job.indptr32[row] : job.indptr64[row];
}
}  // namespace

// Sums over rows. Everything that adds up over the whole data is float64.
struct Sums {
    double* value;  // (models)
    double* bias;   // (models * outputs)
};

template <class T>
struct Kernel {
    // Dense: `packed` holds the factors rearranged, once per call; `scratch` belongs to one thread. A chunk of
    // rows leaves its part of the gradient in scratch, which add_gradient moves into a float64 total of shape
    // (factor_columns, width).
    std::size_t (*packed_bytes)(const Job<T>&);
    void (*pack)(const Job<T>&, void* packed);
    std::size_t (*scratch_bytes)(const Job<T>&);
    void (*dense)(const Job<T>&, const void* packed, void* scratch, std::int64_t begin, std::int64_t end,
                  Sums);
    void (*add_gradient)(const Job<T>&, void* scratch, double* total);

    // CSR, in two halves so that threads share the rows of the first and the columns of the second. offset
    // (factor_columns) is zero_row times factors. slopes (end - begin, stride) are the derivatives with
    // respect to the projections of each row, base_slopes (factor_columns) their sum, which belongs to
    // zero_row. gradient is (width, stride).
    void (*sparse_rows)(const Job<T>&, const T* offset, void* scratch, std::int64_t begin, std::int64_t end,
                        T* slopes, double* base_slopes, Sums);
    void (*sparse_columns)(const Job<T>&, std::int64_t begin, std::int64_t end, std::int64_t first,
                           std::int64_t last, const T* slopes, T* gradient);

    // A factorization machine, in two halves too. slopes is (entries of the rows, anova_stride): the
    // derivatives with respect to the factors that each entry meets.
    std::int64_t (*anova_stride)(const Job<T>&);
    std::size_t (*anova_scratch_bytes)(const Job<T>&);
    void (*anova_rows)(const Job<T>&, void* scratch, std::int64_t begin, std::int64_t end, T* slopes, Sums);
    void (*anova_columns)(const Job<T>&, std::int64_t begin, std::int64_t end, std::int64_t first,
                          std::int64_t last, const T* slopes, T* gradient);

    // c (rows, padded) += a (rows, depth), `stride` apart, times b (depth, padded); `padded` is a multiple of
    // `lanes`.
    int lanes;
    void (*multiply)(const T* a, std::int64_t stride, std::int64_t rows, std::int64_t depth, const T* b,
                     std::int64_t padded, T* c);

    // See prediction.hpp.
    std::size_t (*prediction_bytes)(const FittedMachine<T>&, std::int64_t rows);
    void (*predict)(const FittedMachine<T>&, const T* x, std::ptrdiff_t row_stride,
                    std::ptrdiff_t column_stride, std::int64_t rows, void* scratch, T* result);

    // See minibatch/adam.hpp.
    double (*penalise)(std::int64_t size, const T* params, const T* strength, T* gradient, T scale, T alpha);
    T (*largest)(std::int64_t size, const T* gradient);
    void (*adam_step)(std::int64_t size, T* params, const T* gradient, T* mean, T* square,
                      const AdamStep<T>& step);
};

}  // namespace tensormachines
