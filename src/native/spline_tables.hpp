// The products of a spline basis with factors: see tensormachines._model.spline_basis.SplineBasis.spread and
// gather, their truth.
#pragma once
#include <vector>

#include "arrays.hpp"
#include "instructions.hpp"

namespace tensormachines {

// The values of all functions at all states. Numbers have tables (states, functions); a level of a category
// has one function, whose value is `size`; `always` (functions) is what is the same in all rows, and the last
// state the one that every row is in. Matrices of factors and gradients have rows of `padded` numbers.
template <class T>
class SplineTables {
    template <int n>
    using Table = Array<const T, n>;
    struct Numbers {
        std::int64_t state, function, n_states, n_functions;
        const T *values, *transposed;
    };
    struct Category {
        std::int64_t state, function, count;
    };

public:
    SplineTables(Table<1> always, std::int64_t states, T size)
        : always_(always), states_(states), size_(size) {
        require(states > 0 && always.size() > 0, "there must be a state and a function");
    }

    // Columns of one shape: values (columns, states, functions), and the same transposed.
    void add_numbers(Array<const std::int64_t, 1> states, Array<const std::int64_t, 1> functions,
                     Table<3> values, Table<3> transposed) {
        const std::int64_t columns = std::int64_t(values.shape(0)), n_states = std::int64_t(values.shape(1)),
                           n_functions = std::int64_t(values.shape(2));
        require(has_shape(transposed, columns, n_functions, n_states) && has_shape(states, columns) &&
                    has_shape(functions, columns),
                "the tables have different shapes");
        for (std::int64_t c = 0; c < columns; ++c) {
            check(states(c), n_states, functions(c), n_functions);
            const std::int64_t before = c * n_states * n_functions;
            numbers_.push_back({states(c), functions(c), n_states, n_functions, values.data() + before,
                                transposed.data() + before});
        }
        kept_.push_back(values);
        kept_.push_back(transposed);
    }

    void add_category(std::int64_t state, std::int64_t function, std::int64_t count) {
        check(state, count, function, count);
        categories_.push_back({state, function, count});
    }

    std::int64_t states() const { return states_; }
    std::int64_t functions() const { return std::int64_t(always_.size()); }

    // factors (functions, padded) to those of the states (states, padded)
    void spread(const T* factors, std::int64_t padded, T* spread) const {
        std::fill_n(spread, states_ * padded, T(0));
        for (const Numbers& column : numbers_)
            kernel<T>().multiply(column.values, column.n_functions, column.n_states, column.n_functions,
                                 factors + column.function * padded, padded, spread + column.state * padded);
        for (const Category& column : categories_)
            for (std::int64_t i = 0; i < column.count * padded; ++i)
                spread[column.state * padded + i] = size_ * factors[column.function * padded + i];
        kernel<T>().multiply(always_.data(), functions(), 1, functions(), factors, padded,
                             spread + (states_ - 1) * padded);
    }

    // the gradient of the factors of the states (states, padded) to that of the factors (functions, padded)
    void gather(const T* gradient, std::int64_t padded, T* gathered) const {
        std::fill_n(gathered, functions() * padded, T(0));
        for (const Category& column : categories_)
            for (std::int64_t i = 0; i < column.count * padded; ++i)
                gathered[column.function * padded + i] = size_ * gradient[column.state * padded + i];
        for (const Numbers& column : numbers_)
            kernel<T>().multiply(column.transposed, column.n_states, column.n_functions, column.n_states,
                                 gradient + column.state * padded, padded,
                                 gathered + column.function * padded);
        kernel<T>().multiply(always_.data(), 1, functions(), 1, gradient + (states_ - 1) * padded, padded,
                             gathered);
    }

private:
    void check(std::int64_t state, std::int64_t n_states, std::int64_t function,
               std::int64_t n_functions) const {
        require(state >= 0 && n_states >= 0 && state + n_states < states_ && function >= 0 &&
                    n_functions >= 0 && function + n_functions < functions(),
                "a column has states or functions that are not there");
    }

    Table<1> always_;
    std::int64_t states_;
    T size_;
    std::vector<Numbers> numbers_;
    std::vector<Category> categories_;
    std::vector<Table<3>> kept_;  // as long as the pointers are needed
};

}  // namespace tensormachines
