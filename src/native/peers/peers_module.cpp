// The rival methods for Python: see tensormachines.peers.hadamard and tensormachines.peers.online_polynomial
// for the contracts.
#include <type_traits>
#include <vector>

#include "../arrays.hpp"
#include "../instructions.hpp"
#include "online.hpp"

namespace tensormachines {

void define_peers(nb::module_& m);

namespace {

// Transforms every row in place.
template <class T>
void walsh_hadamard(Array<T, 2> rows) {
    const std::int64_t columns = std::int64_t(rows.shape(1));
    require(columns > 0 && (columns & (columns - 1)) == 0, "the number of columns must be a power of two");
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>)
        chosen().hadamard->single_precision(rows.data(), std::int64_t(rows.shape(0)), columns);
    else
        chosen().hadamard->double_precision(rows.data(), std::int64_t(rows.shape(0)), columns);
}

// ---- learning row by row

template <class T>
using Rows = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <class T>
const OnlineKernel<T>& online_kernel() {
    if constexpr (std::is_same_v<T, float>)
        return *chosen().single_online;
    else
        return *chosen().double_online;
}

// x is (rows, columns), or with indptr and indices the values of a CSR matrix. Returns the number of rows.
template <class T>
std::int64_t read_rows(OnlineJob<T>& job, const Rows<T>& x, const Optional<std::int64_t>& indptr,
                       const Optional<std::int32_t>& indices) {
    job.x = x.data();
    if (x.ndim() == 2) {
        require(std::int64_t(x.shape(1)) == job.columns, "x has the wrong number of columns");
        return job.count = std::int64_t(x.shape(0));
    }
    require(x.ndim() == 1 && indptr && indices && indptr->size() > 0,
            "x must be a matrix, or the values of a CSR matrix");
    job.count = std::int64_t(indptr->size()) - 1;
    job.indptr = indptr->data();
    job.indices = indices->data();
    require(x.size() == indices->size() && job.indptr[job.count] <= std::int64_t(x.size()),
            "indptr points past the end");
    return job.count;
}

template <class T>
OnlineJob<T> read_monomials(const Array<const T, 1>& unit, const Array<const std::int32_t, 1>& parent,
                            const Array<const std::int32_t, 1>& expanded,
                            const Array<const std::int32_t, 2>& children) {
    OnlineJob<T> job{};
    job.columns = std::int64_t(unit.size());
    job.unit = unit.data();
    job.monomials = std::int64_t(expanded.size());
    job.expanded = expanded.data();
    job.parents = std::int64_t(parent.size());
    job.parent = parent.data();
    job.children = children.data();
    require(job.monomials > job.columns, "there must be a constant and every column among the monomials");
    require(has_shape(children, job.parents, job.columns), "children must be (parents, columns)");
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
void learn(Rows<T> x, Optional<std::int64_t> indptr, Optional<std::int32_t> indices, Array<const T, 1> unit,
           Array<const std::int32_t, 1> parent, Array<const std::int32_t, 1> expanded,
           Array<const std::int32_t, 2> children, Optional<std::int64_t> order, Array<const T, 2> y,
           Optional<T> weight, int loss, double learning_rate, double alpha, Array<T, 2> weights,
           Array<T, 2> squares, Array<T, 1> scale, Array<T, 1> inverse, Array<double, 1> sums) {
    OnlineJob<T> job = read_monomials<T>(unit, parent, expanded, children);
    const std::int64_t rows = read_rows(job, x, indptr, indices), monomials = job.monomials;
    if (order) {
        job.order = order->data();
        job.count = std::int64_t(order->size());
        for (std::int64_t i = 0; i < job.count; ++i)
            require(job.order[i] >= 0 && job.order[i] < rows, "order names a row that is not there");
    }
    const std::int64_t outputs = std::int64_t(weights.shape(0));
    require(has_shape(weights, outputs, monomials) && has_shape(squares, outputs, monomials) &&
                has_shape(scale, monomials) && has_shape(inverse, monomials) && has_shape(sums, 2),
            "there must be a number for every monomial, and two sums");
    require(has_shape(y, rows, outputs), "y has the wrong shape");
    require(absent_or_has_shape(weight, rows), "weight has the wrong length");
    job.outputs = int(outputs);
    job.weights = weights.data();
    job.squares = squares.data();
    job.scale = scale.data();
    job.inverse = inverse.data();
    job.sums = sums.data();
    job.loss = OnlineLoss(loss);
    job.y = y.data();
    job.weight = data_or_null(weight);
    job.learning_rate = learning_rate;
    job.alpha = alpha;
    nb::gil_scoped_release release;
    const Work<T> work(job);
    online_kernel<T>().learn(job);
}

template <class T>
void predict(Rows<T> x, Optional<std::int64_t> indptr, Optional<std::int32_t> indices, Array<const T, 1> unit,
             Array<const std::int32_t, 1> parent, Array<const std::int32_t, 1> expanded,
             Array<const std::int32_t, 2> children, Array<const T, 2> weights, Array<T, 2> result) {
    OnlineJob<T> job = read_monomials<T>(unit, parent, expanded, children);
    read_rows(job, x, indptr, indices);
    require(std::int64_t(weights.shape(1)) == job.monomials, "there must be a weight for every monomial");
    require(has_shape(result, job.count, weights.shape(0)), "result has the wrong shape");
    job.outputs = int(weights.shape(0));
    job.fixed_weights = weights.data();
    job.result = result.data();
    nb::gil_scoped_release release;
    const Work<T> work(job);
    online_kernel<T>().predict(job);
}

template <class T>
void define(nb::module_& m) {
    m.def("walsh_hadamard", &walsh_hadamard<T>, nb::arg("rows").noconvert());
    m.def("online_learn", &learn<T>, nb::arg("x").noconvert(), nb::arg("indptr").none(),
          nb::arg("indices").none(), nb::arg("unit").noconvert(), nb::arg("parent").noconvert(),
          nb::arg("expanded").noconvert(), nb::arg("children").noconvert(), nb::arg("order").none(),
          nb::arg("y").noconvert(), nb::arg("weight").none(), nb::arg("loss"), nb::arg("learning_rate"),
          nb::arg("alpha"), nb::arg("weights").noconvert(), nb::arg("squares").noconvert(),
          nb::arg("scale").noconvert(), nb::arg("inverse").noconvert(), nb::arg("sums").noconvert());
    m.def("online_predict", &predict<T>, nb::arg("x").noconvert(), nb::arg("indptr").none(),
          nb::arg("indices").none(), nb::arg("unit").noconvert(), nb::arg("parent").noconvert(),
          nb::arg("expanded").noconvert(), nb::arg("children").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("result").noconvert());
}

}  // namespace

void define_peers(nb::module_& m) {
    define<float>(m);
    define<double>(m);
}

}  // namespace tensormachines
