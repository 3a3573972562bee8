// The Walsh-Hadamard transform: see tensormachines.peers.hadamard. hadamard.cpp is compiled once per
// instruction set.
#pragma once
#include <cstdint>

namespace tensormachines {

// Transforms each of `rows` contiguous rows, `columns` wide (a power of two), in place.
struct Hadamard {
    void (*single_precision)(float* x, std::int64_t rows, std::int64_t columns);
    void (*double_precision)(double* x, std::int64_t rows, std::int64_t columns);
};

}  // namespace tensormachines
