// The shares of a row in the states of each column: see tensormachines._model.spline_states for the contract.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernel.hpp"

namespace tensormachines {

// The last of at least two knots that is not above x, which must not be NaN.
inline std::int64_t interval(const double* knots, std::int64_t count, double x) {
    const double* base = knots;
    for (std::int64_t length = count - 1; length > 1;) {
        const std::int64_t half = length / 2;
        base += base[half] <= x ? half : 0;
        length -= half;
    }
    return base - knots;
}

// Writes the shares of row x (`stride` apart), at most two per column; returns their number.
template <class X, class T>
std::int64_t shares_of_row(const SplineColumns& columns, const X* x, std::ptrdiff_t stride,
                           std::int32_t* states, T* shares) {
    std::int64_t entries = 0;
    for (std::int64_t j = 0; j < columns.count; ++j) {
        const std::int64_t first = columns.first[j], reference = columns.reference[j];
        const std::int64_t count = columns.first[j + 1] - first - columns.missing[j];
        auto add = [&](std::int64_t state, T share) {
            if (state == reference || share == T(0)) return;
            states[entries] = std::int32_t(first + state);
            shares[entries++] = share;
        };
        const double value = double(x[j * stride]);
        if (std::isnan(value)) {
            if (columns.missing[j]) add(count, T(1));
        } else if (columns.category[j]) {
            if (value >= 0 && value < double(count)) add(std::int64_t(value), T(1));
        } else if (count < 2) {
            if (count == 1) add(0, T(1));
        } else {
            const double* knots = columns.knots + first;
            const std::int64_t i = interval(knots, count, value);
            // Halves: the difference of two large numbers would overflow.
            const double share = (0.5 * value - 0.5 * knots[i]) / (0.5 * knots[i + 1] - 0.5 * knots[i]);
            const T above = T(share < 0 ? 0 : share > 1 ? 1 : share);
            add(i, T(1) - above);
            add(i + 1, above);
        }
    }
    return entries;
}

}  // namespace tensormachines
