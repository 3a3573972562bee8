// The Walsh-Hadamard transform: see tensormachines._hadamard. hadamard.cpp is compiled once per instruction set.
#pragma once
#include <cstdint>

namespace tensormachines {

// Each of `rows` rows, `columns` wide (a power of two) and one behind the other, in place.
struct Hadamard {
    void (*single_precision)(float* x, std::int64_t rows, std::int64_t columns);
    void (*double_precision)(double* x, std::int64_t rows, std::int64_t columns);
};

}  // namespace tensormachines
