// The steps of an epoch, and how far they have got.
#pragma once
#include <cmath>
#include <cstdint>

#include "../kernel.hpp"

namespace tensormachines {

struct Progress {
    double total = 0, largest = 0;  // sum of the values; largest entry of the last gradient
    std::int64_t steps = 0;
    bool over = false;  // stopped before all steps were taken

    void stop(std::int64_t step) {
        steps = step;
        over = true;
    }
};

// One step along each block of `order`. Without rates nothing moves; only the values are added up.
template <class T>
struct Course {
    const std::int64_t* order;
    std::int64_t steps;
    const double *rates, *corrections;
    double momentum, memory, smallest, negligible;
    double limit;  // of the sum of the values
    double alpha;
    const double* weights;  // of the blocks
    double total_weight;
    double penalty_at_rest;  // without rates: sum of strength * point^2 of all params but the biases

    bool moves() const { return rates != nullptr; }
    // The share of the penalty that belongs to step i.
    double share(std::int64_t i) const { return alpha * weights[order[i]] / total_weight; }
    AdamStep<T> step(std::int64_t i) const {
        return {T(momentum),   T(memory),     T(rates[i]),          T(corrections[i]),
                T(smallest),   T(negligible), T(1 / total_weight), T(share(i))};
    }
    bool fails(const Progress& progress) const {
        return !std::isfinite(progress.total) || !std::isfinite(progress.largest) || progress.total > limit;
    }
};

}  // namespace tensormachines
