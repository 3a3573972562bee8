// Readers of text: see tensormachines._data.files.
#include <string>

#include "../arrays.hpp"
#include "svmlight.hpp"

namespace tensormachines {

void define_text(nb::module_& m);

namespace {

// Converts a number as Python does, whatever the locale is.
bool number_of_python(const char* begin, const char* end, double& result) {
    const std::string word(begin, end);
    const nb::gil_scoped_acquire python;
    result = PyOS_string_to_double(word.c_str(), nullptr, nullptr);
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

bool svmlight_rows(nb::bytes text, Array<double, 1> y, Array<std::int64_t, 1> indptr,
                   Array<std::int64_t, 1> indices, Array<double, 1> values) {
    require(has_shape(indptr, y.size() + 1) && has_shape(values, indices.size()),
            "a result has the wrong length");
    const Cursor cursor(text.c_str(), text.c_str() + text.size());
    const SvmlightRows found{std::int64_t(y.size()), std::int64_t(indices.size()), y.data(), indptr.data(),
                             indices.data(), values.data()};
    nb::gil_scoped_release release;
    return read_svmlight(cursor, found, number_of_python);
}

}  // namespace

void define_text(nb::module_& m) {
    m.def("svmlight_rows", &svmlight_rows, nb::arg("text"), nb::arg("y").noconvert(),
          nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert());
}

}  // namespace tensormachines
