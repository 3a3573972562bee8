// One step of Adam, in one pass over its vectors: see tensormachines._fit.solvers.adam.
#include <cmath>

#include "../arrays.hpp"
#include "../denormals.hpp"

namespace tensormachines {

void define_adam(nb::module_& m);

namespace {

// In place: mean and square move towards the gradient and its square, params by
//     -rate * mean / (sqrt(square * correction) + smallest),
// and params below `negligible` become 0, before products of them become denormal numbers.
template <class T>
void adam_step(Array<T, 1> params, Array<const T, 1> gradient, Array<T, 1> mean, Array<T, 1> square,
               T momentum, T memory, T rate, T correction, T smallest, T negligible) {
    const std::int64_t size = std::int64_t(params.size());
    require(has_shape(gradient, size) && has_shape(mean, size) && has_shape(square, size),
            "all vectors must have the same length");
    T *p = params.data(), *m = mean.data(), *s = square.data();
    const T* g = gradient.data();
    nb::gil_scoped_release release;
    const FlushDenormals flush;
    for (std::int64_t i = 0; i < size; ++i) {
        m[i] += (1 - momentum) * (g[i] - m[i]);
        s[i] += (1 - memory) * (g[i] * g[i] - s[i]);
        const T moved = p[i] - rate * m[i] / (std::sqrt(s[i] * correction) + smallest);
        p[i] = std::abs(moved) < negligible ? T(0) : moved;
    }
}

template <class T>
void define(nb::module_& m) {
    m.def("adam_step", &adam_step<T>, nb::arg("params").noconvert(), nb::arg("gradient").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("square").noconvert(), nb::arg("momentum"), nb::arg("memory"),
          nb::arg("rate"), nb::arg("correction"), nb::arg("smallest"), nb::arg("negligible"));
}

}  // namespace

void define_adam(nb::module_& m) {
    define<float>(m);
    define<double>(m);
}

}  // namespace tensormachines
