// A polynomial learnt row by row; see tensormachines._online for the contract. Compiled once for each instruction set.
#pragma once
#include <cstdint>

namespace tensormachines {

enum class OnlineLoss : int { squared = 0, logistic = 1 };

template <class T>
struct OnlineJob {
    // Rows: dense and contiguous if indptr is null, else CSR. Taken in the given order, or from the first to the last where there is none.
    const T* x;
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const std::int64_t* order;
    std::int64_t count, columns;
    const T* unit;  // (columns) each column is multiplied by its own

    // Monomials: 0 is the constant, 1 + c the column c; the others are products of an expanded one, their parent, and a column.
    std::int64_t monomials, parents;
    const std::int32_t* parent;    // (parents) their numbers, each after those it is made of
    const std::int32_t* expanded;  // (monomials) the row of children, or -1
    const std::int32_t* children;  // (parents, columns) the number of the product, or -1 where another parent has it

    // What was learnt, in units in which the largest value so far of every monomial is 1.
    int outputs;
    T *weights, *squares;  // (outputs, monomials)
    T *scale, *inverse;    // (monomials) that largest value, and 1 / scale or 0
    double* sums;          // total weight of the rows, and sum of their squared norms in those units

    OnlineLoss loss;
    const T* y;       // (rows, outputs)
    const T* weight;  // (rows), or null
    double learning_rate, alpha;

    // For predicting: weights of the monomials as they come, (outputs, monomials), and the predictions, (count, outputs).
    const T* fixed_weights;
    T* result;

    T *values, *direction;  // (monomials) work space: the copies of an instruction set must not instantiate containers, which others share
    std::int32_t* numbers;
};

template <class T>
struct OnlineKernel {
    void (*learn)(const OnlineJob<T>&);
    void (*predict)(const OnlineJob<T>&);
};

}  // namespace tensormachines
