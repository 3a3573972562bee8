// Learning row by row for Python: see tensormachines._online for the contract.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "instructions.hpp"
#include "online.hpp"

namespace nb = nanobind;

namespace tensormachines {

void define_online(nb::module_& m);

namespace {

template <class T, int n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
template <class T, int n>
using Constant = Array<const T, n>;
template <class T>
using Optional = std::optional<Constant<T, 1>>;
template <class T>
using Rows = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
const OnlineKernel<T>& online_kernel() {
    if constexpr (std::is_same_v<T, float>)
        return *chosen().single_online;
    else
        return *chosen().double_online;
}

// x is (rows, columns), or with indptr and indices the values of a CSR matrix. Returns the number of rows.
template <class T>
std::int64_t read_rows(OnlineJob<T>& job, const Rows<T>& x, const Optional<std::int64_t>& indptr, const Optional<std::int32_t>& indices) {
    job.x = x.data();
    if (x.ndim() == 2) {
        require(std::int64_t(x.shape(1)) == job.columns, "x has the wrong number of columns");
        return job.count = std::int64_t(x.shape(0));
    }
    require(x.ndim() == 1 && indptr && indices && indptr->size() > 0, "x must be a matrix, or the values of a CSR matrix");
    job.count = std::int64_t(indptr->size()) - 1;
    job.indptr = indptr->data();
    job.indices = indices->data();
    require(x.size() == indices->size() && job.indptr[job.count] <= std::int64_t(x.size()), "indptr points past the end");
    return job.count;
}

template <class T>
OnlineJob<T> read_monomials(const Constant<T, 1>& unit, const Constant<std::int32_t, 1>& parent, const Constant<std::int32_t, 1>& expanded,
                            const Constant<std::int32_t, 2>& children) {
    OnlineJob<T> job{};
    job.columns = std::int64_t(unit.size());
    job.unit = unit.data();
    job.monomials = std::int64_t(expanded.size());
    job.expanded = expanded.data();
    job.parents = std::int64_t(parent.size());
    job.parent = parent.data();
    job.children = children.data();
    require(job.monomials > job.columns, "there must be a constant and every column among the monomials");
    require(std::int64_t(children.shape(0)) == job.parents && std::int64_t(children.shape(1)) == job.columns,
            "children must be (parents, columns)");
    return job;
}

template <class T>
class Work {  // for as long as a pass runs
public:
    explicit Work(OnlineJob<T>& job) : values_(2 * job.monomials), numbers_(job.monomials) {
        job.values = values_.data();
        job.direction = values_.data() + job.monomials;
        job.numbers = numbers_.data();
    }

private:
    std::vector<T> values_;
    std::vector<std::int32_t> numbers_;
};

template <class T>
void learn(Rows<T> x, Optional<std::int64_t> indptr, Optional<std::int32_t> indices, Constant<T, 1> unit, Constant<std::int32_t, 1> parent,
           Constant<std::int32_t, 1> expanded, Constant<std::int32_t, 2> children, Optional<std::int64_t> order, Constant<T, 2> y,
           Optional<T> weight, int loss, double learning_rate, double alpha, Array<T, 2> weights, Array<T, 2> squares, Array<T, 1> scale,
           Array<T, 1> inverse, Array<double, 1> sums) {
    OnlineJob<T> job = read_monomials<T>(unit, parent, expanded, children);
    const std::int64_t rows = read_rows(job, x, indptr, indices), monomials = job.monomials;
    if (order) {
        job.order = order->data();
        job.count = std::int64_t(order->size());
        for (std::int64_t i = 0; i < job.count; ++i) require(job.order[i] >= 0 && job.order[i] < rows, "order names a row that is not there");
    }
    require(weights.shape(0) == squares.shape(0) && std::int64_t(weights.shape(1)) == monomials && std::int64_t(squares.shape(1)) == monomials &&
                std::int64_t(scale.size()) == monomials && std::int64_t(inverse.size()) == monomials && sums.size() == 2,
            "there must be a number for every monomial, and two sums");
    require(std::int64_t(y.shape(0)) == rows && y.shape(1) == weights.shape(0), "y has the wrong shape");
    require(!weight || std::int64_t(weight->size()) == rows, "weight has the wrong length");
    job.outputs = int(weights.shape(0));
    job.weights = weights.data();
    job.squares = squares.data();
    job.scale = scale.data();
    job.inverse = inverse.data();
    job.sums = sums.data();
    job.loss = OnlineLoss(loss);
    job.y = y.data();
    job.weight = weight ? weight->data() : nullptr;
    job.learning_rate = learning_rate;
    job.alpha = alpha;
    nb::gil_scoped_release release;
    const Work<T> work(job);
    online_kernel<T>().learn(job);
}

template <class T>
void predict(Rows<T> x, Optional<std::int64_t> indptr, Optional<std::int32_t> indices, Constant<T, 1> unit, Constant<std::int32_t, 1> parent,
             Constant<std::int32_t, 1> expanded, Constant<std::int32_t, 2> children, Constant<T, 2> weights, Array<T, 2> result) {
    OnlineJob<T> job = read_monomials<T>(unit, parent, expanded, children);
    read_rows(job, x, indptr, indices);
    require(std::int64_t(weights.shape(1)) == job.monomials, "there must be a weight for every monomial");
    require(std::int64_t(result.shape(0)) == job.count && result.shape(1) == weights.shape(0), "result has the wrong shape");
    job.outputs = int(weights.shape(0));
    job.fixed_weights = weights.data();
    job.result = result.data();
    nb::gil_scoped_release release;
    const Work<T> work(job);
    online_kernel<T>().predict(job);
}

template <class T>
void define(nb::module_& m) {
    m.def("online_learn", &learn<T>, nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
          nb::arg("unit").noconvert(), nb::arg("parent").noconvert(), nb::arg("expanded").noconvert(), nb::arg("children").noconvert(),
          nb::arg("order").none(), nb::arg("y").noconvert(), nb::arg("weight").none(), nb::arg("loss"), nb::arg("learning_rate"),
          nb::arg("alpha"), nb::arg("weights").noconvert(), nb::arg("squares").noconvert(), nb::arg("scale").noconvert(),
          nb::arg("inverse").noconvert(), nb::arg("sums").noconvert());
    m.def("online_predict", &predict<T>, nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
          nb::arg("unit").noconvert(), nb::arg("parent").noconvert(), nb::arg("expanded").noconvert(), nb::arg("children").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("result").noconvert());
}

}  // namespace

void define_online(nb::module_& m) {
    define<float>(m);
    define<double>(m);
}

}  // namespace tensormachines
