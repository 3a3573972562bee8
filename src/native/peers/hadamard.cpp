// The Walsh-Hadamard transform, compiled once for each instruction set like kernel.cpp.
//
// A transform of 2^k numbers is k stages, each the sums and differences of numbers that differ in one bit of
// their place. The stages commute. Those of the high bits come first, two at a time; the rest of each
// piece fits ever smaller caches, and at last the registers.
#include "hadamard.hpp"

#include <cstring>
#include <utility>

namespace tensormachines {
namespace {

#include "../registers.hpp"

template <class V>
inline void butterfly(V& low, V& high) {
    const V difference = low - high;
    low += high;
    high = difference;
}

// All stages among the registers of an array.
template <class V, int count>
inline void among(V (&r)[count]) {
#pragma GCC unroll 8
    for (int distance = count / 2; distance > 0; distance /= 2)
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i)
            if (!(i & distance)) butterfly(r[i], r[i + distance]);
}

// LANES * LANES numbers: among the registers, and across their lanes by way of the transpose.
template <class T>
inline void square(T* x) {
    constexpr int n = LANES<T>;
    Vec<T> r[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) r[i] = load(x + i * n);
    among(r);
    transpose<T>(r);
    among(r);
    transpose<T>(r);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) store(x + i * n, r[i]);
}

// The highest log2(pieces) stages of `size` numbers.
template <int pieces, class T>
inline void highest(T* x, std::int64_t size) {
    const std::int64_t distance = size / pieces;
    for (std::int64_t i = 0; i < distance; i += LANES<T>) {
        Vec<T> r[pieces];
#pragma GCC unroll 8
        for (int p = 0; p < pieces; ++p) r[p] = load(x + i + p * distance);
        among(r);
#pragma GCC unroll 8
        for (int p = 0; p < pieces; ++p) store(x + i + p * distance, r[p]);
    }
}

template <class T>
void transform(T* x, std::int64_t size) {
    constexpr std::int64_t base = LANES<T> * LANES<T>;
    if (size == base) return square(x);
    if (size == 2 * base) {
        highest<2>(x, size);
        square(x);
        return square(x + base);
    }
    highest<4>(x, size);
    for (int quarter = 0; quarter < 4; ++quarter) transform(x + quarter * (size / 4), size / 4);
}

// For sizes below that of the smallest square.
template <class T>
void small_transform(T* x, std::int64_t size) {
    for (std::int64_t distance = 1; distance < size; distance *= 2)
        for (std::int64_t start = 0; start < size; start += 2 * distance)
            for (std::int64_t i = start; i < start + distance; ++i) butterfly(x[i], x[i + distance]);
}

template <class T>
void walsh_hadamard(T* x, std::int64_t rows, std::int64_t columns) {
    const auto one = columns < LANES<T> * LANES<T> ? small_transform<T> : transform<T>;
    for (std::int64_t row = 0; row < rows; ++row) one(x + row * columns, columns);
}

}  // namespace

#define JOIN(a, b) a##b
#define NAME(prefix, variant) JOIN(prefix, variant)
extern const Hadamard NAME(hadamard_, VARIANT);
const Hadamard NAME(hadamard_, VARIANT) = {walsh_hadamard<float>, walsh_hadamard<double>};

}  // namespace tensormachines
