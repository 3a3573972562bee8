// Arrays from Python, and the checks that all bindings share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

namespace tensormachines {

namespace nb = nanobind;

// Contiguous; Array<const T, n> is only read.
template <class T, int n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
template <class T>
using Optional = std::optional<Array<const T, 1>>;

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class A, class... Sizes>
bool has_shape(const A& array, Sizes... sizes) {
    std::size_t axis = 0;
    return (... && (array.shape(axis++) == std::size_t(sizes)));
}
// Whether an optional array is absent or has this shape.
template <class A, class... Sizes>
bool absent_or_has_shape(const std::optional<A>& array, Sizes... sizes) {
    return !array || has_shape(*array, sizes...);
}
template <class A>
auto data_or_null(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace tensormachines
