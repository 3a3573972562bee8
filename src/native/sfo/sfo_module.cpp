// The linear algebra of the solver "sfo" for Python: see tensormachines._fit.solvers.sfo_subspace and
// sfo_models for the contracts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../arrays.hpp"
#include "../instructions.hpp"
#include "sfo.hpp"

namespace tensormachines {

void define_sfo(nb::module_& m);

namespace {

template <class T>
Passes<T> pass_over(const Array<const T, 2>& rows, std::int64_t count) {
    require(count >= 0 && count <= std::int64_t(rows.shape(0)), "there are fewer rows");
    Passes<T> job{};
    job.rows = rows.data();
    job.count = count;
    job.length = std::int64_t(rows.shape(1));
    return job;
}

// Returns the squared lengths of the vector and of its part outside the span.
template <class T>
std::pair<double, double> project(Array<const T, 2> rows, std::int64_t size, bool learn,
                                  Array<double, 2> defect, Array<double, 1> coordinates) {
    const std::int64_t capacity = std::int64_t(defect.shape(1));
    require(size >= 0 && size < std::int64_t(rows.shape(0)), "there is no row for the vector");
    require(
        size <= capacity && size <= std::int64_t(defect.shape(0)) && size <= std::int64_t(coordinates.size()),
        "a result is too small");
    nb::gil_scoped_release release;
    std::vector<double> work(2 * (size + 1));
    const std::int64_t length = std::int64_t(rows.shape(1));
    Projection<T> job{rows.data(),        size,        length, capacity, learn && size > 0, defect.data(),
                      coordinates.data(), work.data(), 0.0,    0.0};
    if constexpr (std::is_same_v<T, float>)
        chosen().sfo->float_project(job);
    else
        chosen().sfo->double_project(job);
    return {job.square, job.rest};
}

template <class T>
void gram(Array<const T, 2> rows, std::int64_t count, Array<double, 2> result) {
    const Passes<T> job = pass_over(rows, count);
    require(std::int64_t(result.shape(0)) == count && std::int64_t(result.shape(1)) == count,
            "the result has the wrong shape");
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>)
        chosen().sfo->float_gram(job, result.data());
    else
        chosen().sfo->double_gram(job, result.data());
}

template <class T>
void combinations(Array<const T, 2> rows, std::int64_t count, Array<const double, 1> coefficients,
                  Array<const T, 1> vector, double scale, Array<T, 1> result,
                  Optional<double> other_coefficients, Optional<T> other_vector, double other_scale,
                  std::optional<Array<T, 1>> other_result) {
    Passes<T> job = pass_over(rows, count);
    const auto take = [&](const Array<const double, 1>& by, const Array<const T, 1>& to, double times,
                          const Array<T, 1>& into) {
        require(has_shape(by, count) && has_shape(to, job.length) && has_shape(into, job.length),
                "a vector has the wrong length");
        job.coefficients[job.together] = by.data();
        job.vector[job.together] = to.data();
        job.scale[job.together] = times;
        job.combination[job.together++] = into.data();
    };
    take(coefficients, vector, scale, result);
    require(!other_coefficients == !other_vector && !other_vector == !other_result,
            "coefficients, a vector and a result belong together");
    if (other_result) take(*other_coefficients, *other_vector, other_scale, *other_result);
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>)
        chosen().sfo->float_combinations(job);
    else
        chosen().sfo->double_combinations(job);
}

// The arrays of QuadraticModels in sfo_models, which these functions read and change.
struct QuadraticModels {
    Array<std::int64_t, 1> evaluations;
    Array<double, 1> values;
    Array<double, 2> positions, gradients;
    Array<std::int64_t, 1> n_pairs;
    Array<double, 3> steps, changes;
    Array<double, 1> scales;
    Array<double, 3> rows, cores, triangles;
    Array<double, 2> curvature;
    Array<double, 1> linear;

    void check(std::int64_t i, std::int64_t size) const {
        const std::size_t functions = values.size(), capacity = linear.size(), history = steps.shape(1);
        require(i >= 0 && std::size_t(i) < functions && size >= 0 && std::size_t(size) <= capacity,
                "the number of the function, or the size, is out of range");
        require(has_shape(evaluations, functions) && has_shape(n_pairs, functions) &&
                    has_shape(scales, functions) && has_shape(positions, functions, capacity) &&
                    has_shape(gradients, functions, capacity) && has_shape(curvature, capacity, capacity) &&
                    has_shape(steps, functions, history, capacity) &&
                    has_shape(changes, functions, history, capacity) &&
                    has_shape(rows, functions, 2 * history, capacity) &&
                    has_shape(cores, functions, 2 * history, 2 * history) &&
                    has_shape(triangles, functions, 2 * history, 2 * history) && history > 0 &&
                    n_pairs(i) >= 0 &&
                    std::size_t(n_pairs(i)) <= history,
                "arrays do not fit together");
    }
    std::int64_t capacity() const { return std::int64_t(linear.size()); }
    std::int64_t history() const { return std::int64_t(steps.shape(1)); }
    Part part(std::int64_t i) const {
        return {rows.data() + i * 2 * history() * capacity(),
                cores.data() + i * 4 * history() * history(),
                positions.data() + i * capacity(),
                gradients.data() + i * capacity(),
                evaluations(i) ? scales(i) : 0.0,
                evaluations(i) ? 2 * n_pairs(i) : 0};
    }
};

double length_of(const std::vector<double>& vector) {
    double square = 0;
    for (const double x : vector) square += x * x;
    return std::sqrt(square);
}

void remember(QuadraticModels& models, std::int64_t i, const std::vector<double>& step,
              const std::vector<double>& change, double length) {
    const std::int64_t capacity = models.capacity(), history = models.history();
    double *steps = models.steps.data() + i * history * capacity,
           *changes = models.changes.data() + i * history * capacity;
    std::int64_t n = models.n_pairs(i);
    if (n == history) {
        for (double* oldest : {steps, changes})
            std::copy(oldest + capacity, oldest + history * capacity, oldest);
        --n;
    }
    for (std::size_t j = 0; j < step.size(); ++j) {
        steps[n * capacity + std::int64_t(j)] = step[j] / length;
        changes[n * capacity + std::int64_t(j)] = change[j] / length;
    }
    models.n_pairs(i) = n + 1;
}

// Takes in an evaluation of function i. The step and the change of the gradient are those since the last
// observation, unless others are given. Returns false where the pairs need more care than is taken here: then
// nothing of function i is in the sums.
bool observe(QuadraticModels& models, std::int64_t i, std::int64_t size, double value,
             Array<const double, 1> position, Array<const double, 1> gradient, double scale, double shortest,
             double smallest, double largest_ratio, Optional<double> other_step,
             Optional<double> other_change) {
    models.check(i, size);
    require(has_shape(position, size) && has_shape(gradient, size) && !other_step == !other_change &&
                absent_or_has_shape(other_step, size) && absent_or_has_shape(other_change, size),
            "a vector has the wrong length");
    nb::gil_scoped_release release;
    const std::int64_t capacity = models.capacity(), history = models.history();
    const Sizes sizes{size, capacity, 2 * history};
    Part before = models.part(i);
    const std::vector<double> old_rows(before.rows, before.rows + before.n * capacity);
    const std::vector<double> old_core(before.core, before.core + before.n * sizes.core_stride);
    const std::vector<double> old_position(before.position, before.position + size),
        old_gradient(before.gradient, before.gradient + size);
    std::vector<double> step(size), change(size);
    for (std::int64_t j = 0; j < size; ++j) {
        step[j] = other_step ? other_step->data()[j] : position.data()[j] - old_position[j];
        change[j] = other_step ? other_change->data()[j] : gradient.data()[j] - old_gradient[j];
    }
    // A function that was never evaluated has no share.
    const std::vector<double> zeros(models.evaluations(i) ? 0 : size);
    before = {old_rows.data(),
              old_core.data(),
              models.evaluations(i) ? old_position.data() : zeros.data(),
              models.evaluations(i) ? old_gradient.data() : zeros.data(),
              before.scale,
              before.n};

    const double length = length_of(step);
    if (models.evaluations(i) && length > shortest && length_of(change) > smallest)
        remember(models, i, step, change, length);
    models.evaluations(i) += 1;
    models.values(i) = value;
    std::copy(position.data(), position.data() + size, models.positions.data() + i * capacity);
    std::copy(gradient.data(), gradient.data() + size, models.gradients.data() + i * capacity);
    const std::int64_t n = models.n_pairs(i);
    bool fitted = true;
    models.scales(i) = scale;
    if (n > 0) {
        std::vector<double> work(chosen().sfo->fit_work(n));
        const std::int64_t pairs = i * history * capacity;
        fitted = chosen().sfo->fit(sizes, n, models.steps.data() + pairs, models.changes.data() + pairs,
                                   largest_ratio, models.rows.data() + 2 * pairs,
                                   models.cores.data() + i * 4 * history * history,
                                   models.triangles.data() + i * 4 * history * history,
                                   &models.scales(i), work.data());
    }
    const std::vector<double> nothing(fitted ? 0 : size);
    const Part after =
        fitted ? models.part(i)
               : Part{models.rows.data(), models.cores.data(), nothing.data(), nothing.data(), 0.0, 0};
    const std::unique_ptr<double[]> work(new double[std::size_t(2 * (before.n + after.n) * size + 8)]);
    chosen().sfo->replace(sizes, before, after, true, models.curvature.data(), models.linear.data(),
                          work.get());
    return fitted;
}

// Adds functions first, ..., last to the sums.
void include(const QuadraticModels& models, std::int64_t first, std::int64_t last, std::int64_t size) {
    for (std::int64_t i = first; i <= last; ++i) models.check(i, size);
    nb::gil_scoped_release release;
    const std::vector<double> zeros(size);
    const Part nothing{models.rows.data(), models.cores.data(), zeros.data(), zeros.data(), 0.0, 0};
    const std::unique_ptr<double[]> work(new double[std::size_t(4 * models.history() * size + 8)]);
    for (std::int64_t i = first; i <= last; ++i) {
        const Part part = models.evaluations(i) ? models.part(i) : nothing;
        chosen().sfo->replace({size, models.capacity(), 2 * models.history()}, nothing, part, i == last,
                              models.curvature.data(), models.linear.data(), work.get());
    }
}

// The model of function i at x.
double value(const QuadraticModels& models, std::int64_t i, Array<const double, 1> x) {
    const std::int64_t size = std::int64_t(x.size());
    models.check(i, size);
    const Part part = models.part(i);
    std::vector<double> work(size + part.n);
    const Sizes sizes{size, models.capacity(), 2 * models.history()};
    return models.values(i) + chosen().sfo->model_change(sizes, part, x.data(), work.data());
}

// Returns the length of the step and its product with the gradient; nothing where H is not positive definite.
std::optional<std::pair<double, double>> newton(Array<const double, 2> curvature, double diagonal,
                                                Array<const double, 1> linear, Array<const double, 1> x,
                                                Array<double, 2> U, Array<double, 1> gradient,
                                                Array<double, 1> step) {
    const std::size_t size = x.size();
    require(size <= curvature.shape(0) && size <= curvature.shape(1) && size <= linear.size() &&
                has_shape(U, size, size) && has_shape(gradient, size) && has_shape(step, size),
            "arrays do not fit together");
    nb::gil_scoped_release release;
    if (!chosen().sfo->newton({std::int64_t(size), std::int64_t(curvature.shape(1)), 0}, curvature.data(),
                              diagonal, linear.data(), x.data(), U.data(), gradient.data(), step.data()))
        return std::nullopt;
    double square = 0, slope = 0;
    for (std::size_t j = 0; j < size; ++j) {
        square += step.data()[j] * step.data()[j];
        slope += step.data()[j] * gradient.data()[j];
    }
    return std::pair{std::sqrt(square), slope};
}

template <class T>
void define_passes(nb::module_& m) {
    m.def("project", &project<T>, nb::arg("rows").noconvert(), nb::arg("size"), nb::arg("learn"),
          nb::arg("defect").noconvert(), nb::arg("coordinates").noconvert());
    m.def("gram", &gram<T>, nb::arg("rows").noconvert(), nb::arg("count"), nb::arg("result").noconvert());
    m.def("combinations", &combinations<T>, nb::arg("rows").noconvert(), nb::arg("count"),
          nb::arg("coefficients").noconvert(), nb::arg("vector").noconvert(), nb::arg("scale"),
          nb::arg("result").noconvert(), nb::arg("other_coefficients").noconvert().none() = nb::none(),
          nb::arg("other_vector").noconvert().none() = nb::none(), nb::arg("other_scale") = 0.0,
          nb::arg("other_result").noconvert().none() = nb::none());
}

}  // namespace

void define_sfo(nb::module_& m) {
    define_passes<float>(m);
    define_passes<double>(m);
    nb::class_<QuadraticModels>(m, "QuadraticModels")
        .def(nb::init<Array<std::int64_t, 1>, Array<double, 1>, Array<double, 2>, Array<double, 2>,
                      Array<std::int64_t, 1>, Array<double, 3>, Array<double, 3>, Array<double, 1>,
                      Array<double, 3>, Array<double, 3>, Array<double, 3>, Array<double, 2>,
                      Array<double, 1>>(),
             nb::arg("evaluations").noconvert(), nb::arg("values").noconvert(),
             nb::arg("positions").noconvert(), nb::arg("gradients").noconvert(),
             nb::arg("n_pairs").noconvert(), nb::arg("steps").noconvert(), nb::arg("changes").noconvert(),
             nb::arg("scales").noconvert(), nb::arg("rows").noconvert(), nb::arg("cores").noconvert(),
             nb::arg("triangles").noconvert(), nb::arg("curvature").noconvert(), nb::arg("linear").noconvert())
        .def("observe", &observe, nb::arg("i"), nb::arg("size"), nb::arg("value"), nb::arg("position"),
             nb::arg("gradient"), nb::arg("scale"), nb::arg("shortest"), nb::arg("smallest"),
             nb::arg("largest_ratio"), nb::arg("other_step") = nb::none(),
             nb::arg("other_change") = nb::none())
        .def("include", &include, nb::arg("first"), nb::arg("last"), nb::arg("size"))
        .def("value", &value, nb::arg("i"), nb::arg("x"));
    m.def("newton", &newton, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace tensormachines
