// The Python module, and the bindings of the kernel and of the states of splines. See
// tensormachines._model.kernel and tensormachines._model.spline_states for the contracts.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "evaluate.hpp"
#include "instructions.hpp"
#include "kernel.hpp"
#include "spline_states.hpp"

namespace tensormachines {

void define_adam(nb::module_& m);   // minibatch/adam_module.cpp
void define_sfo(nb::module_& m);    // sfo/sfo_module.cpp
void define_peers(nb::module_& m);  // peers/peers_module.cpp

namespace {

// ---- the kernel

// A matrix with any strides, or the values of a CSR matrix.
template <class T>
using Values = nb::ndarray<const T, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
using Index = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;  // int32 or int64

// The shape of a model: see tensormachines._model.layout.
struct Layout {
    Model model;
    int degree, rank, outputs;

    Layout(int code, int degree, int rank, int outputs)
        : model(Model(code)), degree(degree), rank(rank), outputs(outputs) {}
    std::int64_t projections() const {
        const std::int64_t q = degree;
        return 1 + rank * (model == Model::tensor ? q * (q + 1) / 2 - 1 : q - 1);
    }
};

// Rows with their basis, targets and weights. Everything that is the same in all evaluations of a block is
// checked here, once; the arrays stay alive as long as this does.
template <class T>
class Block {
public:
    Block(Values<T> x, std::optional<Index> indptr, std::optional<Index> indices, std::int64_t columns,
          Optional<T> shift, Optional<T> scale, T clip, T constant, bool unit_rows, Optional<T> zero_row,
          std::optional<Array<const T, 2>> y, Optional<T> weight)
        : x_(std::move(x)), indptr_(std::move(indptr)), indices_(std::move(indices)),
          shift_(std::move(shift)), scale_(std::move(scale)), zero_row_(std::move(zero_row)),
          y_(std::move(y)), weight_(std::move(weight)) {
        rows_.x = x_.data();
        rows_.columns = columns;
        rows_.width = columns + (constant != T(0) ? 1 : 0);
        x_.ndim() == 2 ? read_dense() : read_sparse();
        require(!shift_ == !scale_ && absent_or_has_shape(shift_, columns) &&
                    absent_or_has_shape(scale_, columns),
                "shift and scale must have one entry per column");
        require(absent_or_has_shape(zero_row_, rows_.width), "zero_row has the wrong length");
        require(!y_ || std::int64_t(y_->shape(0)) == rows_.rows, "y has the wrong shape");
        require(absent_or_has_shape(weight_, rows_.rows), "weight has the wrong length");
        rows_.basis = {data_or_null(shift_), data_or_null(scale_), clip, constant, unit_rows};
        rows_.zero_row = data_or_null(zero_row_);
        rows_.filled = rows_.zero_row || x_.ndim() == 2;
        rows_.y = data_or_null(y_);
        rows_.weight = data_or_null(weight_);
    }

    // Weighted sums over the rows of the losses, values (models), and of their gradients.
    void value_and_gradient(const Layout& layout, Strided<const T> bias, Array<const T, 2> factors, int loss,
                            Array<double, 1> values, Strided<T> bias_gradient, Array<T, 2> factor_gradient,
                            int threads) const {
        std::vector<T> biases;
        Job<T> job = job_of(Want::gradient, layout, bias, factors, biases);
        require(loss >= 0 && loss <= int(Loss::multinomial), "unknown loss");
        job.loss = Loss(loss);
        require(y_ && has_shape(*y_, job.rows, job.loss == Loss::squared ? job.outputs : 1),
                "y has the wrong shape");
        require(has_shape(values, job.models) && has_shape(bias_gradient, job.models, job.outputs) &&
                    has_shape(factor_gradient, job.width, job.factor_columns),
                "a result has the wrong shape");
        nb::gil_scoped_release release;
        Totals totals(job);
        evaluate(job, threads, totals, factor_gradient.data());
        std::copy(totals.value.begin(), totals.value.end(), values.data());
        for (int m = 0; m < job.models; ++m)
            for (int o = 0; o < job.outputs; ++o) bias_gradient(m, o) = T(totals.bias[m * job.outputs + o]);
    }

    // result (rows, models * outputs)
    void outputs(const Layout& layout, Strided<const T> bias, Array<const T, 2> factors, Array<T, 2> result,
                 int threads) const {
        evaluate_rows(Want::outputs, 1, layout, bias, factors, result, threads);
    }

    // result (rows, models * outputs * terms of one output)
    void terms(const Layout& layout, Strided<const T> bias, Array<const T, 2> factors, Array<T, 2> result,
               int threads) const {
        evaluate_rows(Want::terms, std::int64_t(layout.degree - 1) * layout.rank, layout, bias, factors,
                      result, threads);
    }

private:
    void read_dense() {
        rows_.rows = std::int64_t(x_.shape(0));
        rows_.row_stride = x_.stride(0);
        rows_.column_stride = x_.stride(1);
        require(std::int64_t(x_.shape(1)) == rows_.columns, "x has the wrong number of columns");
    }

    void read_sparse() {
        require(x_.ndim() == 1 && indptr_ && indices_ && indptr_->size() > 0,
                "x must be a matrix, or the values of a CSR matrix");
        require(indptr_->dtype() == indices_->dtype(), "indptr and indices must have the same type");
        require(x_.size() == indices_->size(), "x and indices must have the same length");
        rows_.rows = std::int64_t(indptr_->size()) - 1;
        if (indptr_->dtype() == nb::dtype<std::int32_t>()) {
            rows_.indptr32 = static_cast<const std::int32_t*>(indptr_->data());
            rows_.indices32 = static_cast<const std::int32_t*>(indices_->data());
        } else {
            require(indptr_->dtype() == nb::dtype<std::int64_t>(), "indptr must be int32 or int64");
            rows_.indptr64 = static_cast<const std::int64_t*>(indptr_->data());
            rows_.indices64 = static_cast<const std::int64_t*>(indices_->data());
        }
        const std::int64_t end = rows_.indptr32 ? rows_.indptr32[rows_.rows] : rows_.indptr64[rows_.rows];
        require(end <= std::int64_t(x_.size()), "indptr points past the end");
    }

    // bias is (models, outputs), factors (width, models * outputs * projections). The job points into
    // `biases`.
    Job<T> job_of(Want want, const Layout& layout, const Strided<const T>& bias,
                  const Array<const T, 2>& factors, std::vector<T>& biases) const {
        Job<T> job = rows_;
        job.want = want;
        job.model = layout.model;
        job.degree = layout.degree;
        job.rank = layout.rank;
        job.outputs = layout.outputs;
        job.models = int(bias.shape(0));
        job.projections = layout.projections();
        job.factor_columns = job.projections * job.outputs * job.models;
        require(has_shape(bias, job.models, job.outputs), "bias has the wrong shape");
        require(has_shape(factors, job.width, job.factor_columns), "factors have the wrong shape");
        for (int m = 0; m < job.models; ++m)
            for (int o = 0; o < job.outputs; ++o) biases.push_back(bias(m, o));
        job.bias = biases.data();
        job.factors = factors.data();
        return job;
    }

    void evaluate_rows(Want want, std::int64_t each, const Layout& layout, const Strided<const T>& bias,
                       const Array<const T, 2>& factors, Array<T, 2>& result, int threads) const {
        std::vector<T> biases;
        Job<T> job = job_of(want, layout, bias, factors, biases);
        require(has_shape(result, job.rows, job.models * job.outputs * each), "result has the wrong shape");
        job.result = result.data();
        nb::gil_scoped_release release;
        Totals totals(job);
        evaluate(job, threads, totals, static_cast<T*>(nullptr));
    }

    Values<T> x_;
    std::optional<Index> indptr_, indices_;
    Optional<T> shift_, scale_, zero_row_;
    std::optional<Array<const T, 2>> y_;
    Optional<T> weight_;
    Job<T> rows_{};  // the part of a job that is the same in every evaluation
};

template <class T>
void define_block(nb::module_& m, const char* name) {
    nb::class_<Block<T>>(m, name)
        .def("value_and_gradient", &Block<T>::value_and_gradient, nb::arg("layout"),
             nb::arg("bias").noconvert(), nb::arg("factors").noconvert(), nb::arg("loss"),
             nb::arg("values").noconvert(), nb::arg("bias_gradient").noconvert(),
             nb::arg("factor_gradient").noconvert(), nb::arg("threads"))
        .def("outputs", &Block<T>::outputs, nb::arg("layout"), nb::arg("bias").noconvert(),
             nb::arg("factors").noconvert(), nb::arg("result").noconvert(), nb::arg("threads"))
        .def("terms", &Block<T>::terms, nb::arg("layout"), nb::arg("bias").noconvert(),
             nb::arg("factors").noconvert(), nb::arg("result").noconvert(), nb::arg("threads"));
    // One name for both types: the type of x chooses.
    m.def(
        "block",
        [](Values<T> x, std::optional<Index> indptr, std::optional<Index> indices, std::int64_t columns,
           Optional<T> shift, Optional<T> scale, T clip, T constant, bool unit_rows, Optional<T> zero_row,
           std::optional<Array<const T, 2>> y, Optional<T> weight) {
            return Block<T>(x, indptr, indices, columns, shift, scale, clip, constant, unit_rows, zero_row, y,
                            weight);
        },
        nb::kw_only(), nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
        nb::arg("columns"), nb::arg("shift").none(), nb::arg("scale").none(), nb::arg("clip"),
        nb::arg("constant"), nb::arg("unit_rows"), nb::arg("zero_row").none(), nb::arg("y").none(),
        nb::arg("weight").none());
}

// ---- states of splines

// Writes the shares of all rows of x as CSR: indptr is (rows + 1), states and shares have room for 2 *
// columns + 1 entries per row. Every row ends with a share of 1 in the state after all others. Returns the
// number of entries.
template <class T>
std::int64_t spline_shares(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x, Array<const double, 1> knots,
                           Array<const std::int64_t, 1> first, Array<const std::int64_t, 1> reference,
                           Array<const std::uint8_t, 1> category, Array<const std::uint8_t, 1> missing,
                           Array<std::int64_t, 1> indptr, Array<std::int32_t, 1> states, Array<T, 1> shares) {
    const std::int64_t rows = std::int64_t(x.shape(0)), count = std::int64_t(x.shape(1));
    const std::int64_t room = rows * (2 * count + 1);
    require(has_shape(first, count + 1) && has_shape(reference, count) && has_shape(category, count) &&
                has_shape(missing, count),
            "every column needs its first state, its reference and its kind");
    require(first(0) == 0 && first(count) == std::int64_t(knots.size()), "every state needs a knot");
    for (std::int64_t j = 0; j < count; ++j)
        require(first(j + 1) >= first(j) + missing(j), "the states of the columns must follow each other");
    require(has_shape(indptr, rows + 1) && std::int64_t(states.size()) >= room &&
                std::int64_t(shares.size()) >= room,
            "there is not enough room for the entries");
    const SplineColumns columns{count,           knots.data(),  first.data(), reference.data(),
                                category.data(), missing.data()};
    const T* from = x.data();
    const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
    nb::gil_scoped_release release;
    std::int64_t entries = 0;
    indptr.data()[0] = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        entries += shares_of_row<T>(columns, from + row * row_stride, column_stride, states.data() + entries,
                                    shares.data() + entries);
        states.data()[entries] = std::int32_t(knots.size());
        shares.data()[entries++] = T(1);
        indptr.data()[row + 1] = entries;
    }
    return entries;
}

template <class T>
void define_spline_shares(nb::module_& m) {
    m.def("spline_shares", &spline_shares<T>, nb::arg("x").noconvert(), nb::arg("knots").noconvert(),
          nb::arg("first").noconvert(), nb::arg("reference").noconvert(), nb::arg("category").noconvert(),
          nb::arg("missing").noconvert(), nb::arg("indptr").noconvert(), nb::arg("states").noconvert(),
          nb::arg("shares").noconvert());
}

}  // namespace
}  // namespace tensormachines

NB_MODULE(_native, m) {
    using namespace tensormachines;
    m.def("instructions", [] { return std::string(chosen().name); });
    nb::class_<Layout>(m, "Layout")
        .def(nb::init<int, int, int, int>(), nb::arg("code"), nb::arg("degree"), nb::arg("rank"),
             nb::arg("outputs"));
    define_block<float>(m, "FloatBlock");
    define_block<double>(m, "DoubleBlock");
    define_spline_shares<float>(m);
    define_spline_shares<double>(m);
    define_adam(m);
    define_sfo(m);
    define_peers(m);
}
