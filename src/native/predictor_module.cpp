// The bindings of predictors, and models as plain callables: see tensormachines._model.machine and
// tensormachines._model.compiled for the contracts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "predictor.hpp"

namespace tensormachines {
namespace {

// x (rows, columns) to result (rows, outputs)
template <class T>
void outputs(const Predictor<T>& predictor, nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x,
             Array<T, 2> result, int threads) {
    const std::int64_t rows = std::int64_t(x.shape(0));
    require(std::int64_t(x.shape(1)) == predictor.columns() && has_shape(result, rows, predictor.outputs()),
            "the rows or the result have the wrong shape");
    const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
    const T* from = x.data();
    T* to = result.data();
    if (rows == 1) return predictor(from, row_stride, column_stride, rows, to, 1);
    nb::gil_scoped_release release;
    predictor(from, row_stride, column_stride, rows, to, threads);
}

template <class T>
void define_predictor(nb::module_& m, const char* name) {
    nb::class_<Predictor<T>>(m, name).def("outputs", &outputs<T>, nb::arg("x").noconvert(),
                                          nb::arg("result").noconvert(), nb::arg("threads"));
    m.def(
        "spline_predictor",
        [](Array<const double, 1> knots, Array<const std::int64_t, 1> first,
           Array<const std::int64_t, 1> reference, Array<const std::uint8_t, 1> category,
           Array<const std::uint8_t, 1> missing, const Layout& layout, Array<const T, 1> head,
           Array<const T, 2> factors) {
            return Predictor<T>(BoundColumns{knots, first, reference, category, missing}, std::nullopt, layout,
                                head, factors);
        },
        nb::arg("knots").noconvert(), nb::arg("first").noconvert(), nb::arg("reference").noconvert(),
        nb::arg("category").noconvert(), nb::arg("missing").noconvert(), nb::arg("layout"),
        nb::arg("head").noconvert(), nb::arg("factors").noconvert());
    m.def(
        "affine_predictor",
        [](std::int64_t columns, Optional<T> shift, Optional<T> scale, T clip, T constant, bool unit_rows,
           const Layout& layout, Array<const T, 1> head, Array<const T, 2> factors) {
            return Predictor<T>(std::nullopt, BoundBasis<T>{columns, shift, scale, clip, constant, unit_rows},
                                layout, head, factors);
        },
        nb::arg("columns"), nb::arg("shift").none(), nb::arg("scale").none(), nb::arg("clip"),
        nb::arg("constant"), nb::arg("unit_rows"), nb::arg("layout"), nb::arg("head").noconvert(),
        nb::arg("factors").noconvert());
}

// ---- plain callables

// Codes as in _model/compiled.py.
enum class Link : int { identity = 0, logistic = 1, softmax = 2, log = 3, sigmoid = 4, sorted = 5 };

// A view of an aligned array of float64 with one or two axes, released at the end.
class DoubleView {
public:
    explicit DoubleView(PyObject* array) {
        if (PyObject_GetBuffer(array, &view_, PyBUF_FULL_RO) != 0) {
            PyErr_Clear();
            return;
        }
        valid_ = view_.itemsize == 8 && view_.format && std::strcmp(view_.format, "d") == 0 &&
                 (view_.ndim == 1 || view_.ndim == 2) && !view_.suboffsets &&
                 reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(double) == 0;
        for (int axis = 0; valid_ && axis < view_.ndim; ++axis) valid_ = view_.strides[axis] % 8 == 0;
    }
    ~DoubleView() {
        if (view_.obj) PyBuffer_Release(&view_);
    }
    DoubleView(const DoubleView&) = delete;
    DoubleView& operator=(const DoubleView&) = delete;

    bool valid() const { return valid_; }
    bool row() const { return view_.ndim == 1; }
    std::int64_t rows() const { return row() ? 1 : view_.shape[0]; }
    std::int64_t columns() const { return view_.shape[view_.ndim - 1]; }
    std::ptrdiff_t row_stride() const { return row() ? 0 : view_.strides[0] / 8; }
    std::ptrdiff_t column_stride() const { return view_.strides[view_.ndim - 1] / 8; }
    double* data() const { return static_cast<double*>(view_.buf); }

private:
    Py_buffer view_{};
    bool valid_ = false;
};

class CompiledModel {
public:
    // A log link has the largest value of each output, in `bounds`.
    CompiledModel(nb::object predictor, int link, Optional<double> bounds, bool flat, nb::object recipe)
        : owner_(std::move(predictor)), predictor_(nb::cast<const Predictor<double>*>(owner_)),
          link_(Link(link)), flat_(flat), recipe_(std::move(recipe)),
          numpy_empty_(nb::module_::import_("numpy").attr("empty")),
          numpy_array_(nb::module_::import_("numpy").attr("array")) {
        require(link >= 0 && link <= int(Link::sorted), "unknown link");
        require(link_ != Link::log || (bounds && has_shape(*bounds, predictor_->outputs())),
                "a log link needs the largest value of each output");
        if (bounds) bounds_.assign(bounds->data(), bounds->data() + bounds->size());
    }

    nb::object operator()(nb::handle x) const {
        {
            const DoubleView view(x.ptr());
            if (view.valid()) return of_view(view);
        }
        const nb::object numbers = numpy_array_(x, "float64");
        const DoubleView view(numbers.ptr());
        if (!view.valid()) throw nb::value_error("X must be one row, or a matrix of rows.");
        return of_view(view);
    }

    nb::object recipe() const { return recipe_; }

private:
    nb::object of_view(const DoubleView& view) const {
        if (view.columns() != predictor_->columns()) {
            PyErr_Format(PyExc_ValueError, "X has %lld columns, in the fit there were %lld.",
                         (long long)view.columns(), (long long)predictor_->columns());
            throw nb::python_error();
        }
        const std::int64_t rows = view.rows(), width = link_ == Link::logistic ? 2 : predictor_->outputs();
        if (view.row() && flat_) {
            double output;
            (*predictor_)(view.data(), 0, view.column_stride(), 1, &output, 1);
            return nb::float_(link_ == Link::log ? bounded_exp(output, 0) : output);
        }
        nb::object result = view.row() ? numpy_empty_(width)
                            : flat_    ? numpy_empty_(rows)
                                       : numpy_empty_(nb::make_tuple(rows, width));
        const DoubleView to(result.ptr());
        if (rows == 1) {
            evaluate_rows(view, rows, width, to.data());
        } else {
            nb::gil_scoped_release release;
            evaluate_rows(view, rows, width, to.data());
        }
        return result;
    }

    double bounded_exp(double z, std::int64_t output) const {
        return std::exp(z > bounds_[output] ? bounds_[output] : z);
    }

    void evaluate_rows(const DoubleView& view, std::int64_t rows, std::int64_t width, double* to) const {
        (*predictor_)(view.data(), view.row_stride(), view.column_stride(), rows, to, 1);
        if (link_ == Link::logistic)
            for (std::int64_t i = rows - 1; i >= 0; --i) {  // from the end: outputs are narrower
                const double z = to[i], small = std::exp(-std::abs(z)), less = small / (1 + small),
                             more = 1 / (1 + small);
                to[2 * i] = z < 0 ? more : less;
                to[2 * i + 1] = z < 0 ? less : more;
                if (z != z) to[2 * i] = to[2 * i + 1] = z;
            }
        if (link_ == Link::log)
            for (std::int64_t i = 0; i < rows * width; ++i) to[i] = bounded_exp(to[i], i % width);
        if (link_ == Link::sigmoid)
            for (std::int64_t i = 0; i < rows * width; ++i) to[i] = 1 / (1 + std::exp(-to[i]));
        if (link_ == Link::sorted)
            for (std::int64_t i = 0; i < rows; ++i)  // NaN last, as in NumPy
                std::sort(to + i * width, to + (i + 1) * width,
                          [](double a, double b) { return a < b || (b != b && a == a); });
        if (link_ == Link::softmax)
            for (std::int64_t i = 0; i < rows; ++i) {
                double *z = to + i * width, total = 0;
                const double most = *std::max_element(z, z + width);
                for (std::int64_t k = 0; k < width; ++k) total += z[k] = std::exp(z[k] - most);
                for (std::int64_t k = 0; k < width; ++k) z[k] /= total;
            }
    }

    nb::object owner_;
    const Predictor<double>* predictor_;
    Link link_;
    std::vector<double> bounds_;
    bool flat_;  // one number a row
    nb::object recipe_, numpy_empty_, numpy_array_;
};

}  // namespace

void define_predictors(nb::module_& m) {
    define_predictor<float>(m, "FloatPredictor");
    define_predictor<double>(m, "DoublePredictor");
    nb::class_<CompiledModel>(m, "CompiledModel")
        .def(nb::init<nb::object, int, Optional<double>, bool, nb::object>(), nb::arg("predictor"),
             nb::arg("link"), nb::arg("bounds").none(), nb::arg("flat"), nb::arg("recipe"))
        .def("__call__", &CompiledModel::operator(), nb::arg("X"))
        .def("__reduce__", &CompiledModel::recipe);
}

}  // namespace tensormachines
