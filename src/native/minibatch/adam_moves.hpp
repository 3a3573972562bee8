// What all ways to take Adam's steps share: moves of the params, and stretches of splines.
#pragma once
#include <algorithm>
#include <vector>

#include "../block.hpp"

namespace tensormachines {

template <class T>
T* at_or_null(T* vector, std::int64_t begin) {
    return vector ? vector + begin : nullptr;
}

// Moves `size` params from `begin` on; gradient and point are those of these params alone.
template <class T>
AdamSums move_params(const AdamVectors<T>& v, std::int64_t begin, std::int64_t size, const T* gradient,
                     T* point, const AdamStep<T>& step) {
    return kernel<T>().adam_step(size,
                                 {v.params + begin, v.mean + begin, v.square + begin,
                                  at_or_null(v.strength, begin), at_or_null(v.units, begin)},
                                 gradient, point, step);
}

// Moves what comes before the factors: biases, which have no penalty, and weights.
template <class T>
AdamSums move_head(const AdamVectors<T>& vectors, const Layout& layout, const T* gradient, T* point,
                   AdamStep<T> step) {
    const std::int64_t biases = layout.outputs;
    step.scale = 1;
    AdamSums sums = move_params(vectors, biases, layout.head() - biases, gradient + biases,
                                at_or_null(point, biases), step);
    step.alpha = 0;
    sums.largest = larger(sums.largest, move_params(vectors, 0, biases, gradient, point, step).largest);
    return sums;
}

// Columns of the factors, filled up to whole registers.
template <class T>
std::int64_t padded_columns(const Layout& layout) {
    const std::int64_t lanes = kernel<T>().lanes;
    return (layout.columns() + lanes - 1) / lanes * lanes;
}

// Functions of splines whose gradient is gathered, moved and spread while it is in a near cache: all of some
// columns of X, or levels.
struct SplineStretch {
    std::int64_t first, last;          // pieces of the splines
    std::int64_t function, functions;  // of these
};

template <class Piece>
std::vector<SplineStretch> divide_splines(const std::vector<Piece>& pieces) {
    constexpr std::int64_t enough = 256;  // work to be worth a stretch: products, and some per function
    const std::int64_t count = std::int64_t(pieces.size());
    std::vector<SplineStretch> stretches;
    for (std::int64_t p = 0, first = 0, work = 0; p < count; ++p) {
        const Piece& piece = pieces[p];
        work += (piece.number ? piece.n_states / 2 + 8 : 8) * piece.n_functions;
        if (work < enough && p + 1 < count) continue;
        const std::int64_t function = pieces[first].function;
        stretches.push_back({first, p + 1, function, piece.function + piece.n_functions - function});
        first = p + 1;
        work = 0;
    }
    return stretches;
}

// Adds up what the stretches add to the last state, which every row is in: always is (stretches, padded).
template <class T>
void add_up_always(const T* always, std::int64_t stretches, std::int64_t padded, T* last) {
    std::fill_n(last, padded, T(0));
    for (std::int64_t s = 0; s < stretches; ++s)
        for (std::int64_t k = 0; k < padded; ++k) last[k] += always[s * padded + k];
}

}  // namespace tensormachines
