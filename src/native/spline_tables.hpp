// The products of a spline basis with factors: see tensormachines._model.spline_basis.SplineBasis.spread and
// gather, their truth.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "instructions.hpp"

namespace tensormachines {

// The values of all functions at all states. Those of numbers are a SplineNumber; a level of a category has
// one function, whose value is `size`; `always` (functions) is what is the same in all rows, and the last
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
        const SplineNumber<T>* number;  // or null
    };

    SplineTables(Table<1> always, std::int64_t states, T size)
        : always_(always), states_(states), size_(size) {
        require(states > 0 && always.size() > 0, "there must be a state and a function");
    }

    // A number; all tables are given transposed, too.
    void add_number(std::int64_t state, std::int64_t function, std::int64_t knots, std::int64_t reference,
                    std::pair<Table<2>, Table<2>> even, std::pair<Table<2>, Table<2>> odd,
                    std::pair<Table<2>, Table<2>> others) {
        const std::int64_t evens = std::int64_t(even.first.shape(1)), odds = std::int64_t(odd.first.shape(1)),
                           n_states = std::int64_t(others.first.shape(0)),
                           n_others = std::int64_t(others.first.shape(1)), waves = evens + odds;
        require(evens == waves / 2 && knots >= 0 && knots <= n_states && reference < n_states &&
                    fits(even, knots - knots / 2, evens) && fits(odd, knots / 2, odds) &&
                    fits(others, n_states, n_others),
                "the tables of a number have the wrong shape");
        check(state, n_states, function, waves + n_others);
        numbers_.push_back({knots, n_states, waves, n_others, reference, even.first.data(), odd.first.data(),
                            others.first.data(), even.second.data(), odd.second.data(),
                            others.second.data()});
        pieces_.push_back({state, n_states, function, waves + n_others, &numbers_.back()});
        for (const auto& tables : {even, odd, others}) kept_.push_back(tables);
    }

    void add_category(std::int64_t state, std::int64_t function, std::int64_t count) {
        constexpr std::int64_t at_once = 64;  // levels
        check(state, count, function, count);
        for (std::int64_t i = 0; i < count; i += at_once) {
            const std::int64_t some = std::min(at_once, count - i);
            pieces_.push_back({state + i, some, function + i, some, nullptr});
        }
    }

    std::int64_t states() const { return states_; }
    // Of spreading or gathering one column of factors.
    std::int64_t products() const {
        std::int64_t total = 0;
        for (const Piece& piece : pieces_)
            total += (piece.number ? piece.n_states / 2 : 1) * piece.n_functions;
        return total;
    }
    std::int64_t functions() const { return std::int64_t(always_.size()); }

    // All pieces, in the order of the functions, with those that no column has.
    std::vector<Piece> pieces() const {
        std::vector<Piece> pieces = pieces_, all;
        std::sort(pieces.begin(), pieces.end(),
                  [](const Piece& a, const Piece& b) { return a.function < b.function; });
        pieces.push_back({states_ - 1, 0, functions(), 0, nullptr});
        std::int64_t next = 0;
        for (const Piece& piece : pieces) {
            for (; next < piece.function; ++next) all.push_back({states_ - 1, 0, next, 1, nullptr});
            if (piece.n_functions) all.push_back(piece);
            next = piece.function + piece.n_functions;
        }
        return all;
    }

    // The factors (functions, padded) of pieces that follow each other, to those of their states; writes to
    // `always` (padded) what they add to the last state.
    void spread(const Piece* begin, const Piece* end, const T* factors, std::int64_t padded, T* spread,
                T* always) const {
        const std::int64_t first = begin->function;
        std::memset(always, 0, padded * sizeof(T));
        for (const Piece* piece = begin; piece < end; ++piece) {
            const T* from = factors + (piece->function - first) * padded;
            T* own = spread + piece->state * padded;
            if (piece->number)
                kernel<T>().spread_number(*piece->number, from, padded, own);
            else
                for (std::int64_t i = 0; i < piece->n_states * padded; ++i) own[i] = size_ * from[i];
            for (std::int64_t f = 0; f < piece->n_functions; ++f) {
                const T same = always_.data()[piece->function + f];
                for (std::int64_t k = 0; k < padded; ++k) always[k] += same * from[f * padded + k];
            }
        }
    }

    // The gradient of the factors of all states, which is overwritten, to that of the factors of pieces that
    // follow each other.
    void gather(const Piece* begin, const Piece* end, T* gradient, std::int64_t padded, T* gathered) const {
        const T* last = gradient + (states_ - 1) * padded;
        for (const Piece* piece = begin; piece < end; ++piece) {
            T *own = gradient + piece->state * padded,
              *to = gathered + (piece->function - begin->function) * padded;
            for (std::int64_t f = 0; f < piece->n_functions; ++f) {
                const T always = always_.data()[piece->function + f];
                for (std::int64_t k = 0; k < padded; ++k) to[f * padded + k] = always * last[k];
            }
            if (piece->number)
                kernel<T>().gather_number(*piece->number, own, padded, to);
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

    // the gradient of the factors of the states (states, padded), which is overwritten, to that of the
    // factors (functions, padded)
    void gather(T* gradient, std::int64_t padded, T* gathered) const {
        const std::vector<Piece> all = pieces();
        gather(all.data(), all.data() + all.size(), gradient, padded, gathered);
    }

private:
    static bool fits(const std::pair<Table<2>, Table<2>>& tables, std::int64_t rows, std::int64_t columns) {
        return has_shape(tables.first, rows, columns) && has_shape(tables.second, columns, rows);
    }

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
    std::deque<SplineNumber<T>> numbers_;  // which stay where they are
    std::vector<std::pair<Table<2>, Table<2>>> kept_;
};

}  // namespace tensormachines
