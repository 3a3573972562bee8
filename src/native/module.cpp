// The Python module: turns arrays into a Job and checks that their shapes agree.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "instructions.hpp"
#include "kernel.hpp"
#include "run.hpp"

namespace nb = nanobind;

namespace tensormachines {

void define_algebra(nb::module_& m);  // algebra_module.cpp
void define_online(nb::module_& m);   // online_module.cpp
void define_hats(nb::module_& m);     // hats_module.cpp
void define_adam(nb::module_& m);     // adam_module.cpp

namespace {

template <class T>
using Values = nb::ndarray<const T, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sum = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
void read_rows(Job<T>& job, const Values<T>& x, const std::optional<Whole>& indptr, const std::optional<Whole>& indices, std::int64_t columns) {
    job.x = x.data();
    job.columns = columns;
    if (x.ndim() == 2) {
        job.rows = std::int64_t(x.shape(0));
        job.row_stride = x.stride(0);
        job.column_stride = x.stride(1);
        return require(std::int64_t(x.shape(1)) == columns, "x has the wrong number of columns");
    }
    require(x.ndim() == 1 && indptr && indices && indptr->size() > 0, "x must be a matrix, or the values of a CSR matrix");
    require(indptr->dtype() == indices->dtype(), "indptr and indices must have the same type");
    require(x.size() == indices->size(), "x and indices must have the same length");
    job.rows = std::int64_t(indptr->size()) - 1;
    if (indptr->dtype() == nb::dtype<std::int32_t>()) {
        job.indptr32 = static_cast<const std::int32_t*>(indptr->data());
        job.indices32 = static_cast<const std::int32_t*>(indices->data());
        require(job.indptr32[job.rows] <= std::int64_t(x.size()), "indptr points past the end");
    } else {
        require(indptr->dtype() == nb::dtype<std::int64_t>(), "indptr must be int32 or int64");
        job.indptr64 = static_cast<const std::int64_t*>(indptr->data());
        job.indices64 = static_cast<const std::int64_t*>(indices->data());
        require(job.indptr64[job.rows] <= std::int64_t(x.size()), "indptr points past the end");
    }
}

// The only entry: see tensormachines._kernel for the contract.
template <class T>
void evaluate(int want, Values<T> x, std::optional<Whole> indptr, std::optional<Whole> indices, std::int64_t columns,
              std::optional<Vector<T>> shift, std::optional<Vector<T>> scale, T clip, T constant, bool unit_rows,
              std::optional<Vector<T>> zero_row, int model, Vector<T> bias, Matrix<T> factors, int degree, int rank, int outputs, int models, int loss,
              std::optional<Matrix<T>> y, std::optional<Vector<T>> weight, Output<T> result, Sum value, Sum bias_gradient, int threads) {
    Job<T> job{};
    read_rows(job, x, indptr, indices, columns);
    job.basis = {shift ? shift->data() : nullptr, scale ? scale->data() : nullptr, clip, constant, unit_rows};
    job.zero_row = zero_row ? zero_row->data() : nullptr;
    job.width = columns + (constant != T(0) ? 1 : 0);
    job.filled = job.zero_row || x.ndim() == 2;
    job.degree = degree;
    job.rank = rank;
    job.outputs = outputs;
    job.models = models;
    job.model = Model(model);
    const std::int64_t factors_of_rank = job.model == Model::tensor ? std::int64_t(degree) * (degree + 1) / 2 - 1 : degree - 1;
    job.projections = 1 + rank * factors_of_rank;
    job.factor_columns = job.projections * outputs * models;
    job.factors = factors.data();
    job.bias = bias.data();
    job.want = Want(want);
    job.loss = Loss(loss);
    job.y = y ? y->data() : nullptr;
    job.weight = weight ? weight->data() : nullptr;

    const std::int64_t heads = std::int64_t(models) * outputs, targets = job.loss == Loss::squared ? outputs : 1;
    require(!shift == !scale && (!shift || (std::int64_t(shift->size()) == columns && std::int64_t(scale->size()) == columns)),
            "shift and scale must have one entry a column");
    require(!zero_row || std::int64_t(zero_row->size()) == job.width, "zero_row has the wrong length");
    require(std::int64_t(factors.shape(0)) == job.width && std::int64_t(factors.shape(1)) == job.factor_columns, "factors have the wrong shape");
    require(std::int64_t(bias.size()) == heads, "bias has the wrong length");
    if (job.want == Want::gradient) {
        require(y && std::int64_t(y->shape(0)) == job.rows && std::int64_t(y->shape(1)) == targets, "y has the wrong shape");
        require(!weight || std::int64_t(weight->size()) == job.rows, "weight has the wrong length");
        require(std::int64_t(value.size()) == models && std::int64_t(bias_gradient.size()) == heads, "the sums have the wrong length");
        require(std::int64_t(result.shape(0)) == job.width && std::int64_t(result.shape(1)) == job.factor_columns, "result has the wrong shape");
    } else {
        const std::int64_t each = job.want == Want::outputs ? heads : heads * (degree - 1) * rank;
        require(std::int64_t(result.shape(0)) == job.rows && std::int64_t(result.shape(1)) == each, "result has the wrong shape");
        job.result = result.data();
    }

    nb::gil_scoped_release release;
    Totals totals(job);
    if (job.model == Model::anova)
        run_anova(job, threads, totals, result.data());
    else if (x.ndim() == 2)
        run_dense(job, threads, totals, result.data());
    else
        run_sparse(job, threads, totals, result.data());
    if (job.want != Want::gradient) return;
    std::copy(totals.value.begin(), totals.value.end(), value.data());
    std::copy(totals.bias.begin(), totals.bias.end(), bias_gradient.data());
}

// Every row in place.
template <class T>
void walsh_hadamard(Output<T> rows) {
    const std::int64_t columns = std::int64_t(rows.shape(1));
    require(columns > 0 && (columns & (columns - 1)) == 0, "the number of columns must be a power of two");
    nb::gil_scoped_release release;
    if constexpr (sizeof(T) == 4)
        chosen().hadamard->single_precision(rows.data(), std::int64_t(rows.shape(0)), columns);
    else
        chosen().hadamard->double_precision(rows.data(), std::int64_t(rows.shape(0)), columns);
}

template <class T>
void define(nb::module_& m) {
    m.def("walsh_hadamard", &walsh_hadamard<T>, nb::arg("rows").noconvert());
    m.def("evaluate", &evaluate<T>, nb::arg("want"), nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
          nb::arg("columns"), nb::arg("shift").none(), nb::arg("scale").none(), nb::arg("clip"), nb::arg("constant"), nb::arg("unit_rows"),
          nb::arg("zero_row").none(), nb::arg("model"), nb::arg("bias").noconvert(), nb::arg("factors").noconvert(), nb::arg("degree"), nb::arg("rank"),
          nb::arg("outputs"), nb::arg("models"), nb::arg("loss"), nb::arg("y").none(), nb::arg("weight").none(),
          nb::arg("result").noconvert(), nb::arg("value").noconvert(), nb::arg("bias_gradient").noconvert(), nb::arg("threads"));
}

}  // namespace
}  // namespace tensormachines

NB_MODULE(_native, m) {
    m.def("instructions", [] { return std::string(tensormachines::chosen().name); });
    tensormachines::define<float>(m);
    tensormachines::define<double>(m);
    tensormachines::define_algebra(m);
    tensormachines::define_online(m);
    tensormachines::define_hats(m);
    tensormachines::define_adam(m);
}
