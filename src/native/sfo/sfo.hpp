// The linear algebra of the solver "sfo": see tensormachines._fit.solvers.sfo_subspace and sfo_models for
// what each function means. Plain data only, as in kernel.hpp: sfo.cpp is compiled once per instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tensormachines {

// Passes over `count` rows of `length` elements, one after the other. At most MOST_TOGETHER vectors share a
// pass. Sums are float64.
constexpr int MOST_TOGETHER = 6;

template <class T>
struct Passes {
    const T* rows;
    std::int64_t count, length;
    int together;
    const T* vector[MOST_TOGETHER];             // (length); of a combination, the vector that is added to
    double* products[MOST_TOGETHER];            // (count)
    const double* coefficients[MOST_TOGETHER];  // (count)
    double scale[MOST_TOGETHER];                // of vector
    T* combination[MOST_TOGETHER];              // (length), may be vector itself
};

// Row `size` of `rows` holds a vector: `coordinates` (size) are those of its projection onto the span of the
// rows above. `defect` (size, size), rows `capacity` apart, is the difference of the products of these rows
// from those of orthonormal ones; if `learn`, that of the last row is computed first.
template <class T>
struct Projection {
    const T* rows;
    std::int64_t size, length, capacity;
    bool learn;
    double* defect;
    double* coordinates;
    double* work;         // 2 * (size + 1)
    double square, rest;  // squared lengths of the vector, and of its part outside the span
};

// The share of one function in the sum of the models: see QuadraticModels.
struct Part {
    const double* rows;      // (n, size)
    const double* core;      // (n, n)
    const double* position;  // (size)
    const double* gradient;  // (size)
    double scale;
    std::int64_t n;
};

// Vectors, and rows of the curvature, use the first `size` of `stride` numbers. Rows of a core are
// `core_stride` apart.
struct Sizes {
    std::int64_t size, stride, core_stride;
};

struct SfoKernel {
    void (*float_gram)(const Passes<float>&, double* result);  // (count, count)
    void (*double_gram)(const Passes<double>&, double* result);
    void (*float_combinations)(const Passes<float>&);
    void (*double_combinations)(const Passes<double>&);
    void (*float_project)(Projection<float>&);
    void (*double_project)(Projection<double>&);
    // H_i from n pairs; false where the pairs are too close to dependent. `work` holds fit_work(n) zeros. Rows
    // of the triangle are as far apart as those of the core.
    std::int64_t (*fit_work)(std::int64_t n);
    bool (*fit)(const Sizes&, std::int64_t n, const double* steps, const double* changes,
                double largest_ratio, double* rows, double* core, double* triangle, double* scale, double* work);
    double (*model_change)(const Sizes&, const Part&, const double* x, double* work);
    // curvature (size, size), or its upper triangle only, and linear (size): one part taken out, another put
    // in. `work` holds 2 * (both n) * size + a register.
    void (*replace)(const Sizes&, const Part& before, const Part& after, bool both_triangles,
                    double* curvature, double* linear, double* work);
    // H = curvature + diagonal I = U'U, in the upper triangle of U (size, size); the gradient at x, and H^-1
    // gradient. False where H is not positive definite.
    bool (*newton)(const Sizes&, const double* curvature, double diagonal, const double* linear,
                   const double* x, double* U, double* gradient, double* step);
};

}  // namespace tensormachines
