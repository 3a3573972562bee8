// The linear algebra of the solver "sfo" for Python: see tensormachines._subspace and tensormachines._quadratic_models for the contracts.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "algebra.hpp"
#include "instructions.hpp"

namespace nb = nanobind;

namespace tensormachines {

void define_algebra(nb::module_& m);

namespace {

template <class T, int n>
using Array = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
template <class T, int n>
using Constant = Array<const T, n>;
template <class T>
using Optional = std::optional<Constant<T, 1>>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
Passes<T> pass_over(const Constant<T, 2>& rows, std::int64_t count) {
    require(count >= 0 && count <= std::int64_t(rows.shape(0)), "there are fewer rows");
    Passes<T> job{};
    job.rows = rows.data();
    job.count = count;
    job.length = std::int64_t(rows.shape(1));
    return job;
}

// Returns the squared lengths of the vector and of what lies outside.
template <class T>
std::pair<double, double> project(Constant<T, 2> rows, std::int64_t size, bool learn, Array<double, 2> defect,
                                  Array<double, 1> coordinates) {
    const std::int64_t capacity = std::int64_t(defect.shape(1));
    require(size >= 0 && size < std::int64_t(rows.shape(0)), "there is no row for the vector");
    require(size <= capacity && size <= std::int64_t(defect.shape(0)) && size <= std::int64_t(coordinates.size()), "a result is too small");
    nb::gil_scoped_release release;
    std::vector<double> work(2 * (size + 1));
    const std::int64_t length = std::int64_t(rows.shape(1));
    Projection<T> job{rows.data(), size, length, capacity, learn && size > 0, defect.data(), coordinates.data(), work.data(), 0.0, 0.0};
    if constexpr (std::is_same_v<T, float>)
        chosen().algebra->float_project(job);
    else
        chosen().algebra->double_project(job);
    return {job.square, job.rest};
}

template <class T>
void gram(Constant<T, 2> rows, std::int64_t count, Array<double, 2> result) {
    const Passes<T> job = pass_over(rows, count);
    require(std::int64_t(result.shape(0)) == count && std::int64_t(result.shape(1)) == count, "the result has the wrong shape");
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>)
        chosen().algebra->float_gram(job, result.data());
    else
        chosen().algebra->double_gram(job, result.data());
}

template <class T>
void combinations(Constant<T, 2> rows, std::int64_t count, Constant<double, 1> coefficients, Constant<T, 1> vector, double scale,
                  Array<T, 1> result, Optional<double> other_coefficients, Optional<T> other_vector, double other_scale,
                  std::optional<Array<T, 1>> other_result) {
    Passes<T> job = pass_over(rows, count);
    const auto take = [&](const Constant<double, 1>& by, const Constant<T, 1>& to, double times, const Array<T, 1>& into) {
        require(std::int64_t(by.size()) == count && std::int64_t(to.size()) == job.length && std::int64_t(into.size()) == job.length,
                "a vector has the wrong length");
        job.coefficients[job.together] = by.data();
        job.vector[job.together] = to.data();
        job.scale[job.together] = times;
        job.combination[job.together++] = into.data();
    };
    take(coefficients, vector, scale, result);
    require(!other_coefficients == !other_vector && !other_vector == !other_result, "coefficients, a vector and a result belong together");
    if (other_result) take(*other_coefficients, *other_vector, other_scale, *other_result);
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, float>)
        chosen().algebra->float_combinations(job);
    else
        chosen().algebra->double_combinations(job);
}

// The arrays of QuadraticModels.
struct State {
    Array<std::int64_t, 1> evaluations;
    Array<double, 1> values;
    Array<double, 2> positions, gradients;
    Array<std::int64_t, 1> n_pairs;
    Array<double, 3> steps, changes;
    Array<double, 1> scales;
    Array<double, 3> rows, cores;
    Array<double, 2> curvature;
    Array<double, 1> linear;

    void check(std::int64_t i, std::int64_t size) const {
        const std::size_t functions = values.size(), capacity = linear.size(), history = steps.shape(1);
        const auto pairs = [&](const Array<double, 3>& a, std::size_t many, std::size_t each) {
            return a.shape(0) == functions && a.shape(1) == many && a.shape(2) == each;
        };
        const auto vectors = [&](const Array<double, 2>& a, std::size_t many) { return a.shape(0) == many && a.shape(1) == capacity; };
        require(i >= 0 && std::size_t(i) < functions && size >= 0 && std::size_t(size) <= capacity, "no such function or size");
        require(evaluations.size() == functions && n_pairs.size() == functions && scales.size() == functions &&
                    vectors(positions, functions) && vectors(gradients, functions) && vectors(curvature, capacity) && pairs(steps, history, capacity) &&
                    pairs(changes, history, capacity) && pairs(rows, 2 * history, capacity) && pairs(cores, 2 * history, 2 * history) &&
                    history > 0 && n_pairs(i) >= 0 && std::size_t(n_pairs(i)) <= history,
                "arrays do not fit together");
    }
    std::int64_t capacity() const { return std::int64_t(linear.size()); }
    std::int64_t history() const { return std::int64_t(steps.shape(1)); }
    Part part(std::int64_t i) const {
        return {rows.data() + i * 2 * history() * capacity(), cores.data() + i * 4 * history() * history(),
                positions.data() + i * capacity(), gradients.data() + i * capacity(), evaluations(i) ? scales(i) : 0.0, evaluations(i) ? 2 * n_pairs(i) : 0};
    }
};

double length_of(const std::vector<double>& vector) {
    double square = 0;
    for (const double x : vector) square += x * x;
    return std::sqrt(square);
}

void remember(State& state, std::int64_t i, const std::vector<double>& step, const std::vector<double>& change, double length) {
    const std::int64_t capacity = state.capacity(), history = state.history();
    double *steps = state.steps.data() + i * history * capacity, *changes = state.changes.data() + i * history * capacity;
    std::int64_t n = state.n_pairs(i);
    if (n == history) {
        for (double* oldest : {steps, changes}) std::copy(oldest + capacity, oldest + history * capacity, oldest);
        --n;
    }
    for (std::size_t j = 0; j < step.size(); ++j) {
        steps[n * capacity + std::int64_t(j)] = step[j] / length;
        changes[n * capacity + std::int64_t(j)] = change[j] / length;
    }
    state.n_pairs(i) = n + 1;
}

// Another step and change of the gradient may be given than those from the last observation to this one.
// False where the pairs need more care than is taken here: then nothing of function i is in the sums.
bool observe(std::int64_t i, std::int64_t size, double value, Constant<double, 1> position, Constant<double, 1> gradient, double scale,
             double shortest, double smallest, double largest_ratio, Array<std::int64_t, 1> evaluations, Array<double, 1> values,
             Array<double, 2> positions, Array<double, 2> gradients, Array<std::int64_t, 1> n_pairs, Array<double, 3> steps,
             Array<double, 3> changes, Array<double, 1> scales, Array<double, 3> rows, Array<double, 3> cores, Array<double, 2> curvature,
             Array<double, 1> linear, Optional<double> other_step, Optional<double> other_change) {
    State state{evaluations, values, positions, gradients, n_pairs, steps, changes, scales, rows, cores, curvature, linear};
    state.check(i, size);
    require(std::int64_t(position.size()) == size && std::int64_t(gradient.size()) == size && !other_step == !other_change &&
                (!other_step || (std::int64_t(other_step->size()) == size && std::int64_t(other_change->size()) == size)),
            "a vector has the wrong length");
    nb::gil_scoped_release release;
    const std::int64_t capacity = state.capacity(), history = state.history();
    const Models models{size, capacity, 2 * history};
    Part before = state.part(i);
    const std::vector<double> old_rows(before.rows, before.rows + before.n * capacity);
    const std::vector<double> old_core(before.core, before.core + before.n * models.core_stride);
    const std::vector<double> old_position(before.position, before.position + size), old_gradient(before.gradient, before.gradient + size);
    std::vector<double> step(size), change(size);
    for (std::int64_t j = 0; j < size; ++j) {
        step[j] = other_step ? other_step->data()[j] : position.data()[j] - old_position[j];
        change[j] = other_step ? other_change->data()[j] : gradient.data()[j] - old_gradient[j];
    }
    // A function that was never evaluated gives nothing.
    const std::vector<double> zeros(evaluations(i) ? 0 : size);
    before = {old_rows.data(), old_core.data(), evaluations(i) ? old_position.data() : zeros.data(),
              evaluations(i) ? old_gradient.data() : zeros.data(), before.scale, before.n};

    const double length = length_of(step);
    if (evaluations(i) && length > shortest && length_of(change) > smallest) remember(state, i, step, change, length);
    evaluations(i) += 1;
    values(i) = value;
    std::copy(position.data(), position.data() + size, positions.data() + i * capacity);
    std::copy(gradient.data(), gradient.data() + size, gradients.data() + i * capacity);
    const std::int64_t n = n_pairs(i);
    bool fitted = true;
    scales(i) = scale;
    if (n > 0) {
        std::vector<double> work(chosen().algebra->fit_work(n));
        const std::int64_t pairs = i * history * capacity;
        fitted = chosen().algebra->fit(models, n, steps.data() + pairs, changes.data() + pairs, largest_ratio, rows.data() + 2 * pairs,
                                       cores.data() + i * 4 * history * history, &scales(i), work.data());
    }
    const std::vector<double> nothing(fitted ? 0 : size);
    const Part after = fitted ? state.part(i) : Part{rows.data(), cores.data(), nothing.data(), nothing.data(), 0.0, 0};
    const std::unique_ptr<double[]> work(new double[std::size_t(2 * (before.n + after.n) * size + 8)]);
    chosen().algebra->replace(models, before, after, true, curvature.data(), linear.data(), work.get());
    return fitted;
}

// Puts functions first, ..., last into the sums.
void include(std::int64_t first, std::int64_t last, std::int64_t size, Array<std::int64_t, 1> evaluations, Array<double, 1> values,
             Array<double, 2> positions, Array<double, 2> gradients, Array<std::int64_t, 1> n_pairs, Array<double, 3> steps,
             Array<double, 3> changes, Array<double, 1> scales, Array<double, 3> rows, Array<double, 3> cores, Array<double, 2> curvature,
             Array<double, 1> linear) {
    const State state{evaluations, values, positions, gradients, n_pairs, steps, changes, scales, rows, cores, curvature, linear};
    for (std::int64_t i = first; i <= last; ++i) state.check(i, size);
    nb::gil_scoped_release release;
    const std::vector<double> zeros(size);
    const Part nothing{rows.data(), cores.data(), zeros.data(), zeros.data(), 0.0, 0};
    const std::unique_ptr<double[]> work(new double[std::size_t(4 * state.history() * size + 8)]);
    for (std::int64_t i = first; i <= last; ++i) {
        const Part part = evaluations(i) ? state.part(i) : nothing;
        chosen().algebra->replace({size, state.capacity(), 2 * state.history()}, nothing, part, i == last, curvature.data(), linear.data(),
                                  work.get());
    }
}

// The model of function i at x.
double model_value(std::int64_t i, Constant<double, 1> x, Array<std::int64_t, 1> evaluations, Array<double, 1> values,
                   Array<double, 2> positions, Array<double, 2> gradients, Array<std::int64_t, 1> n_pairs, Array<double, 3> steps,
                   Array<double, 3> changes, Array<double, 1> scales, Array<double, 3> rows, Array<double, 3> cores,
                   Array<double, 2> curvature, Array<double, 1> linear) {
    const State state{evaluations, values, positions, gradients, n_pairs, steps, changes, scales, rows, cores, curvature, linear};
    const std::int64_t size = std::int64_t(x.size());
    state.check(i, size);
    const Part part = state.part(i);
    std::vector<double> work(size + part.n);
    return values(i) + chosen().algebra->model_change({size, state.capacity(), 2 * state.history()}, part, x.data(), work.data());
}

bool newton(Constant<double, 2> curvature, double diagonal, Constant<double, 1> linear, Constant<double, 1> x, Array<double, 2> U,
            Array<double, 1> gradient, Array<double, 1> step) {
    const std::size_t size = x.size();
    require(size <= curvature.shape(0) && size <= curvature.shape(1) && size <= linear.size() && U.shape(0) == size && U.shape(1) == size &&
                gradient.size() == size && step.size() == size,
            "arrays do not fit together");
    nb::gil_scoped_release release;
    return chosen().algebra->newton({std::int64_t(size), std::int64_t(curvature.shape(1)), 0}, curvature.data(), diagonal, linear.data(),
                                    x.data(), U.data(), gradient.data(), step.data());
}

template <class T>
void define_passes(nb::module_& m) {
    m.def("project", &project<T>, nb::arg("rows").noconvert(), nb::arg("size"), nb::arg("learn"), nb::arg("defect").noconvert(),
          nb::arg("coordinates").noconvert());
    m.def("gram", &gram<T>, nb::arg("rows").noconvert(), nb::arg("count"), nb::arg("result").noconvert());
    m.def("combinations", &combinations<T>, nb::arg("rows").noconvert(), nb::arg("count"), nb::arg("coefficients").noconvert(),
          nb::arg("vector").noconvert(), nb::arg("scale"), nb::arg("result").noconvert(),
          nb::arg("other_coefficients").noconvert().none() = nb::none(), nb::arg("other_vector").noconvert().none() = nb::none(),
          nb::arg("other_scale") = 0.0, nb::arg("other_result").noconvert().none() = nb::none());
}

}  // namespace

void define_algebra(nb::module_& m) {
    define_passes<float>(m);
    define_passes<double>(m);
    m.def("observe", &observe, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().none(), nb::arg().none());
    m.def("include", &include, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("model_value", &model_value);
    m.def("newton", &newton, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
}

}  // namespace tensormachines
