// The shares of a row in the states of each column: see tensormachines._model.spline_states for the contract.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

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

// Writes the entries of one column after the other, sorted by state: see tensormachines._model.packed_shares.
struct SharePacker {
    std::uint32_t *entries, *runs;
    std::vector<std::uint64_t> keys{}, sorted{};  // state, row, share
    std::vector<std::int32_t> places{};           // of the states

    // Adds column j of `count` rows of x, `stride` apart; returns the number of entries and of runs.
    template <class X>
    std::pair<std::int64_t, std::int64_t> add(const SplineColumns& columns, std::int64_t j, const X* x,
                                              std::ptrdiff_t stride, std::int64_t count) {
        constexpr std::int64_t few = 4096;  // states
        keys.clear();
        for (std::int64_t i = 0; i < count; ++i) add_key(columns, j, double(x[i * stride]), i);
        const std::int64_t states = columns.first[j + 1] - columns.first[j];
        if (states <= few)
            sort_by_counting(states);
        else
            std::sort(keys.begin(), keys.end());
        const std::uint32_t *first_entry = entries, *first_run = runs;
        for (std::size_t i = 0, end; i < keys.size(); i = end) {
            const std::uint64_t state = keys[i] >> 32;
            std::uint32_t share = 0;
            for (end = i; end < keys.size() && keys[end] >> 32 == state; ++end) {
                *entries++ = std::uint32_t(keys[end]);
                share |= std::uint32_t(keys[end]) & 0xffff;
            }
            *runs++ = std::uint32_t(state << 16 | (share ? 0x8000 : 0) | (end - i - 1));
        }
        return {entries - first_entry, runs - first_run};
    }

private:
    void add_key(const SplineColumns& columns, std::int64_t j, double x, std::int64_t row) {
        const std::int64_t first = columns.first[j],
                           count = columns.first[j + 1] - first - columns.missing[j];
        std::int64_t state = -1, share = 0;
        if (std::isnan(x)) {
            if (columns.missing[j]) state = count;
        } else if (columns.category[j]) {
            if (x >= 0 && x < double(count)) state = std::int64_t(x);
        } else if (count == 1) {
            state = 0;
        } else if (count > 1) {
            const double* knots = columns.knots + first;
            state = interval(knots, count, x);
            const double low = 0.5 * knots[state], high = 0.5 * knots[state + 1],
                         above = (0.5 * x - low) / (high - low);
            share = std::int64_t(std::nearbyint((above < 0 ? 0 : above > 1 ? 1 : above) * 65535));
            if (share == 65535) {
                ++state;
                share = 0;
            }
        }
        if (state < 0 || (state == columns.reference[j] && share == 0)) return;
        keys.push_back(std::uint64_t(state) << 32 | std::uint64_t(row) << 16 | std::uint64_t(share));
    }

    void sort_by_counting(std::int64_t states) {
        places.assign(states + 1, 0);
        for (const std::uint64_t key : keys) ++places[(key >> 32) + 1];
        for (std::int64_t i = 0; i < states; ++i) places[i + 1] += places[i];
        sorted.resize(keys.size());
        for (const std::uint64_t key : keys) sorted[places[key >> 32]++] = key;
        keys.swap(sorted);
    }
};

}  // namespace tensormachines
