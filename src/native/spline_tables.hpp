// The products of a spline basis with factors: see tensormachines._model.spline_basis.SplineBasis.spread and
// gather, their truth.
#pragma once
#include <algorithm>
#include <cstring>
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
public:
    // Functions that follow each other, and all states in which they differ from `always`: a column of
    // numbers, some levels of a category, or a function that is the same in all rows.
    struct Piece {
        std::int64_t state, n_states, function, n_functions;
        const T *values, *transposed;  // null unless these are numbers
    };

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
            pieces_.push_back({states(c), n_states, functions(c), n_functions, values.data() + before,
                               transposed.data() + before});
        }
        kept_.push_back(values);
        kept_.push_back(transposed);
    }

    void add_category(std::int64_t state, std::int64_t function, std::int64_t count) {
        constexpr std::int64_t at_once = 64;  // levels
        check(state, count, function, count);
        for (std::int64_t i = 0; i < count; i += at_once) {
            const std::int64_t some = std::min(at_once, count - i);
            pieces_.push_back({state + i, some, function + i, some, nullptr, nullptr});
        }
    }

    std::int64_t states() const { return states_; }
    std::int64_t functions() const { return std::int64_t(always_.size()); }

    // All pieces, in the order of the functions, with those that no column has.
    std::vector<Piece> pieces() const {
        std::vector<Piece> pieces = pieces_, all;
        std::sort(pieces.begin(), pieces.end(),
                  [](const Piece& a, const Piece& b) { return a.function < b.function; });
        pieces.push_back({states_ - 1, 0, functions(), 0, nullptr, nullptr});
        std::int64_t next = 0;
        for (const Piece& piece : pieces) {
            for (; next < piece.function; ++next) all.push_back({states_ - 1, 0, next, 1, nullptr, nullptr});
            if (piece.n_functions) all.push_back(piece);
            next = piece.function + piece.n_functions;
        }
        return all;
    }

    // The factors (functions, padded) of pieces that follow each other, to those of their states; writes to
    // `always` (padded) what they add to the last state.
    void spread(const Piece* begin, const Piece* end, const T* factors, std::int64_t padded, T* spread,
                T* always) const {
        const std::int64_t first = begin->function, count = end[-1].function + end[-1].n_functions - first;
        for (const Piece* piece = begin; piece < end; ++piece) {
            const T* from = factors + (piece->function - first) * padded;
            T* own = spread + piece->state * padded;
            if (piece->values) {
                std::memset(own, 0, piece->n_states * padded * sizeof(T));
                kernel<T>().multiply(piece->values, piece->n_functions, piece->n_states, piece->n_functions,
                                     from, padded, own);
            } else {
                for (std::int64_t i = 0; i < piece->n_states * padded; ++i) own[i] = size_ * from[i];
            }
        }
        std::memset(always, 0, padded * sizeof(T));
        kernel<T>().multiply(always_.data() + first, count, 1, count, factors, padded, always);
    }

    // The gradient of the factors of all states to that of the factors of pieces that follow each other.
    void gather(const Piece* begin, const Piece* end, const T* gradient, std::int64_t padded,
                T* gathered) const {
        const T* last = gradient + (states_ - 1) * padded;
        for (const Piece* piece = begin; piece < end; ++piece) {
            const T* own = gradient + piece->state * padded;
            T* to = gathered + (piece->function - begin->function) * padded;
            for (std::int64_t f = 0; f < piece->n_functions; ++f) {
                const T always = always_.data()[piece->function + f];
                for (std::int64_t k = 0; k < padded; ++k) to[f * padded + k] = always * last[k];
            }
            if (piece->values)
                kernel<T>().multiply(piece->transposed, piece->n_states, piece->n_functions, piece->n_states,
                                     own, padded, to);
            else
                for (std::int64_t i = 0; i < piece->n_states * padded; ++i) to[i] += size_ * own[i];
        }
    }

    // factors (functions, padded) to those of the states (states, padded)
    void spread(const T* factors, std::int64_t padded, T* spread) const {
        const std::vector<Piece> all = pieces();
        std::fill_n(spread, states_ * padded, T(0));
        this->spread(all.data(), all.data() + all.size(), factors, padded, spread,
                     spread + (states_ - 1) * padded);
    }

    // the gradient of the factors of the states (states, padded) to that of the factors (functions, padded)
    void gather(const T* gradient, std::int64_t padded, T* gathered) const {
        const std::vector<Piece> all = pieces();
        gather(all.data(), all.data() + all.size(), gradient, padded, gathered);
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
    std::vector<Piece> pieces_;
    std::vector<Table<3>> kept_;  // as long as the pointers are needed
};

}  // namespace tensormachines
