// Tables to sparse rows of shares, for Python: see tensormachines._hats for the contract.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

#include "hats.hpp"

namespace nb = nanobind;

namespace tensormachines {

void define_hats(nb::module_& m);

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// Rows of x one after the other; every row ends with a share of 1 in the state after all others. indptr is (rows + 1), states and shares
// have room for 2 * columns + 1 entries a row. Returns the number of entries.
template <class T>
std::int64_t hats(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x, Vector<const double> knots, Vector<const std::int64_t> first,
                  Vector<const std::int64_t> reference, Vector<const std::uint8_t> category, Vector<const std::uint8_t> missing,
                  Vector<std::int64_t> indptr, Vector<std::int32_t> states, Vector<T> shares) {
    const std::int64_t rows = std::int64_t(x.shape(0)), count = std::int64_t(x.shape(1));
    const std::int64_t room = rows * (2 * count + 1);
    require(std::int64_t(first.size()) == count + 1 && std::int64_t(reference.size()) == count && std::int64_t(category.size()) == count &&
                std::int64_t(missing.size()) == count,
            "every column needs its first state, its reference, its kind");
    require(first(0) == 0 && first(count) == std::int64_t(knots.size()), "every state needs a knot");
    for (std::int64_t j = 0; j < count; ++j) require(first(j + 1) >= first(j) + missing(j), "the states of the columns must follow each other");
    require(std::int64_t(indptr.size()) == rows + 1 && std::int64_t(states.size()) >= room && std::int64_t(shares.size()) >= room,
            "there is not enough room for the entries");
    const HatColumns columns{count, knots.data(), first.data(), reference.data(), category.data(), missing.data()};
    const T* from = x.data();
    const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
    nb::gil_scoped_release release;
    std::int64_t entries = 0;
    indptr.data()[0] = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        entries += hats_of_row<T>(columns, from + row * row_stride, column_stride, states.data() + entries, shares.data() + entries);
        states.data()[entries] = std::int32_t(knots.size());
        shares.data()[entries++] = T(1);
        indptr.data()[row + 1] = entries;
    }
    return entries;
}

template <class T>
void define(nb::module_& m) {
    m.def("hats", &hats<T>, nb::arg("x").noconvert(), nb::arg("knots").noconvert(), nb::arg("first").noconvert(),
          nb::arg("reference").noconvert(), nb::arg("category").noconvert(), nb::arg("missing").noconvert(), nb::arg("indptr").noconvert(),
          nb::arg("states").noconvert(), nb::arg("shares").noconvert());
}

}  // namespace

void define_hats(nb::module_& m) {
    define<float>(m);
    define<double>(m);
}

}  // namespace tensormachines
