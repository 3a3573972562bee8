// A polynomial learnt row by row; see tensormachines.peers.online_polynomial for the contract. Compiled once
// for each instruction set.
#pragma once
#include <cstdint>

namespace tensormachines {

enum class OnlineLoss : int { squared = 0, logistic = 1 };

template <class T>
struct OnlineJob {
    // Rows: dense and contiguous if indptr is null, else CSR. Taken in the given order, or from the first to
    // the last where there is none.
    const T* x;
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const std::int64_t* order;
    std::int64_t count, columns;
    const T* unit;  // (columns) each column is multiplied by its own

    // Monomials: 0 is the constant, 1 + c the column c; the others are products of an expanded one, their
    // parent, and a column.
    std::int64_t monomials, parents;
    const std::int32_t* parent;    // (parents) their numbers, each after those it is made of
    const std::int32_t* expanded;  // (monomials) the row of children, or -1
    const std::int32_t* children;  // (parents, columns) number of the product, or -1: another parent has it

    // The learnt numbers, in units in which the largest value so far of every monomial is 1.
    int outputs;
    T *weights, *squares;  // (outputs, monomials)
    T *scale, *inverse;    // (monomials) that largest value, and 1 / scale or 0
    double* sums;          // total weight of the rows, and sum of their squared norms in those units

    OnlineLoss loss;
    const T* y;       // (rows, outputs)
    const T* weight;  // (rows), or null
    double learning_rate, alpha;

    // For predictions: weights of the unscaled monomials, (outputs, monomials), and the result, (count,
    // outputs).
    const T* fixed_weights;
    T* result;

    // Work space (monomials): a copy for one instruction set must not instantiate containers that others
    // share.
    T *values, *direction;
    std::int32_t* numbers;
};

template <class T>
struct OnlineKernel {
    void (*learn)(const OnlineJob<T>&);
    void (*predict)(const OnlineJob<T>&);
};

}  // namespace tensormachines
