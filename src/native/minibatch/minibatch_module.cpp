// Steps of Adam over minibatches: see tensormachines._fit.solvers.adam and tensormachines._model.objective.
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "../block.hpp"
#include "../denormals.hpp"
#include "course.hpp"
#include "descent.hpp"
#include "packed_descent.hpp"
#include "sparse_descent.hpp"

namespace tensormachines {

void define_minibatches(nb::module_& m);

namespace {

template <class T>
using Vector = Array<T, 1>;

// Blocks whose losses add up, with the share of the total weight that each has: that of all blocks of an
// epoch, of which these may be a few.
template <class T>
class Minibatches {
public:
    Minibatches(nb::list blocks, Vector<const double> weights, double total_weight, const Layout& layout,
                int loss, double parameter)
        : kept_(std::move(blocks)), layout_(layout), loss_{loss, parameter}, total_weight_(total_weight) {
        require(kept_.size() == weights.size() && weights.size() > 0, "each block must have a weight");
        for (std::size_t i = 0; i < weights.size(); ++i) {
            blocks_.push_back(nb::cast<const Block<T>*>(nb::handle(kept_[i])));
            blocks_.back()->job(loss_, layout, 1, nullptr);  // which checks the targets
            require(blocks_.back()->features() == blocks_[0]->features(), "blocks of different bases");
            same_spline_ = same_spline_ && blocks_.back()->spline() == blocks_[0]->spline();
            all_packed_ = all_packed_ && blocks_.back()->packed_entries() >= 0;
            weights_.push_back(weights(i));
        }
        size_ = layout.head() + blocks_[0]->features() * layout.columns();
        if (layout.model == Model::tensor && !blocks_[0]->spline()) {
            std::vector<Job<T>> jobs;
            for (const Block<T>* block : blocks_) jobs.push_back(block->job(loss_, layout, 1, nullptr));
            few_columns_ = number_columns(jobs);
        }
    }

    // Takes one step along each block of `order`, with the rates and corrections of the steps. Without rates,
    // nothing moves, and only the values of the blocks are added up. Returns the sum of the values, the
    // largest entry of the last gradient, and the number of steps. There are fewer steps than blocks if the
    // sum exceeds `limit`, or something is not finite; the vectors are then useless. Params are in `units`, if
    // these are given; the penalty is alpha / 2 * strength * params^2, without units.
    std::tuple<double, double, std::int64_t> epoch(Vector<T> params, Vector<T> mean, Vector<T> square,
                                                   Vector<const std::int64_t> order,
                                                   Vector<const double> rates,
                                                   Vector<const double> corrections, double momentum,
                                                   double memory, double smallest, double negligible,
                                                   double limit, double alpha, Optional<T> strength,
                                                   Optional<T> units, int threads) {
        require(has_shape(params, size_) && has_shape(mean, size_) && has_shape(square, size_) &&
                    absent_or_has_shape(strength, size_) && absent_or_has_shape(units, size_),
                "a vector has the wrong length");
        const bool moves = rates.size() > 0;
        require(rates.size() == corrections.size() && (!moves || rates.size() == order.size()),
                "each step must have a rate and a correction");
        for (std::size_t i = 0; i < order.size(); ++i)
            require(order(i) >= 0 && order(i) < std::int64_t(blocks_.size()), "there is no such block");
        const AdamVectors<T> vectors{params.data(), mean.data(), square.data(), data_or_null(strength),
                                     data_or_null(units)};
        const Course<T> course{order.data(),
                               std::int64_t(order.size()),
                               moves ? rates.data() : nullptr,
                               corrections.data(),
                               momentum,
                               memory,
                               smallest,
                               negligible,
                               limit,
                               alpha,
                               weights_.data(),
                               total_weight_,
                               moves ? 0 : penalty(vectors, layout_.outputs)};
        Team team(threads_of_step(threads));
        const std::shared_ptr<const Division> division =
            few_columns_.empty() ? divide(team.start()) : nullptr;
        nb::gil_scoped_release release;
        const FlushDenormals flush;
        const SplineTables<T>* spline =
            same_spline_ && layout_.model == Model::tensor ? blocks_[0]->spline() : nullptr;
        Progress progress;
        if (spline && all_packed_)
            progress = PackedDescent<T>(vectors, layout_, *spline, blocks_, loss_, team).run(course);
        else if (division)
            progress = run_all_columns(vectors, spline, course, *division, team);
        else
            progress = run_few_columns(vectors, course, team);
        return {progress.total, progress.largest, progress.steps};
    }

private:
    // Threads exchange factors, projections and slopes in every step: with packed rows that takes longer than it
    // saves where there is little to compute.
    int threads_of_step(int threads) const {
        constexpr std::int64_t fewest = 3'000'000;  // products of a step
        const Block<T>& block = *blocks_[0];
        if (block.packed_entries() >= 0 && layout_.columns() * block.products() < fewest) return 1;
        return useful_threads(block.rows(), threads);
    }

    // The sum of strength * point^2 over the params from `begin` on.
    double penalty(const AdamVectors<T>& vectors, std::int64_t begin) const {
        double total = 0;
        for (std::int64_t i = begin; i < size_; ++i) {
            const T point = vectors.units ? vectors.params[i] * vectors.units[i] : vectors.params[i];
            total += double(point) * double(point) * (vectors.strength ? double(vectors.strength[i]) : 1.0);
        }
        return total;
    }

    // How threads share the columns.
    struct Division {
        Borders borders;
        std::vector<Splits> splits;  // of the blocks
    };

    // Takes the steps of a course: `evaluate` returns the totals of step i, and `move` moves along them.
    template <class Evaluate, class Move>
    Progress run(const Course<T>& course, Evaluate evaluate, Move move) const {
        Progress progress;
        for (std::int64_t i = 0; i < course.steps; ++i) {
            Totals totals = evaluate(i);
            totals /= total_weight_;
            progress.total += totals.value[0];
            if (course.fails(progress)) progress.stop(i);
            if (progress.over) return progress;
            if (!course.moves()) {
                progress.total += 0.5 * course.share(i) * course.penalty_at_rest;
                continue;
            }
            const AdamSums sums = move(totals, i);
            progress.total += 0.5 * course.share(i) * sums.penalty;
            progress.largest = sums.largest;
            if (course.fails(progress)) progress.stop(i);
            if (progress.over) return progress;
        }
        progress.steps = course.steps;
        return progress;
    }

    Progress run_few_columns(const AdamVectors<T>& vectors, const Course<T>& course, Team& team) const {
        const double of_factors = penalty(vectors, layout_.head());
        SparseDescent<T> descent(vectors, size_, layout_, few_columns_, course, of_factors, team);
        const Progress progress = run(
            course,
            [&](std::int64_t i) { return descent.evaluate(*blocks_[course.order[i]], loss_, i); },
            [&](const Totals& totals, std::int64_t i) { return descent.step(totals, i); });
        if (course.moves()) descent.finish();
        return progress;
    }

    Progress run_all_columns(const AdamVectors<T>& vectors, const SplineTables<T>* spline,
                             const Course<T>& course, const Division& division, Team& team) const {
        Descent<T> descent(vectors, size_, layout_, spline, division.borders, team);
        return run(
            course,
            [&](std::int64_t i) {
                const std::int64_t number = course.order[i];
                return descent.evaluate(*blocks_[number], loss_, division.splits[number]);
            },
            [&](const Totals& totals, std::int64_t i) { return descent.step(totals, course.step(i)); });
    }

    // Returns the last one if it is for as many threads.
    std::shared_ptr<const Division> divide(int threads) {
        const std::lock_guard<std::mutex> one_at_a_time(dividing_);  // free-threaded Python has no lock
        if (division_ && division_->borders.size() == std::size_t(threads) + 1) return division_;
        const Job<T> first = blocks_[0]->job(loss_, layout_, 1, nullptr);
        const bool sparse = first.indptr32 || first.indptr64, split = sparse && threads > 1;
        auto division = std::make_shared<Division>();
        if (first.packed) {  // whose columns are shared otherwise
            division->borders.resize(threads + 1);
            division->splits.resize(blocks_.size());
            return division_ = division;
        }
        const std::vector<std::int64_t> sample = split ? sample_columns(first) : all_columns(first);
        division->borders = column_borders(sample, first.width, threads);
        for (const Block<T>* block : blocks_)
            division->splits.push_back(
                split ? split_rows(block->job(loss_, layout_, 1, nullptr), division->borders) : Splits{});
        return division_ = division;
    }

    nb::list kept_;
    Layout layout_;
    LossChoice loss_;
    std::vector<const Block<T>*> blocks_;
    std::vector<double> weights_;
    double total_weight_;
    std::int64_t size_;
    bool same_spline_ = true, all_packed_ = true;
    std::vector<FewColumns<T>> few_columns_;  // of the blocks; empty if they have many
    std::mutex dividing_;
    std::shared_ptr<const Division> division_;
};

// One step, in place.
template <class T>
void adam_step(Vector<T> params, Vector<const T> gradient, Vector<T> mean, Vector<T> square, T momentum,
               T memory, T rate, T correction, T smallest, T negligible) {
    const std::int64_t size = std::int64_t(params.size());
    require(has_shape(gradient, size) && has_shape(mean, size) && has_shape(square, size),
            "all vectors must have the same length");
    const AdamVectors<T> vectors{params.data(), mean.data(), square.data(), nullptr, nullptr};
    const T* g = gradient.data();
    nb::gil_scoped_release release;
    const FlushDenormals flush;
    kernel<T>().adam_step(size, vectors, g, nullptr,
                          {momentum, memory, rate, correction, smallest, negligible, T(1), T(0)});
}

template <class T>
void define(nb::module_& m, const char* name) {
    m.def("adam_step", &adam_step<T>, nb::arg("params").noconvert(), nb::arg("gradient").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("square").noconvert(), nb::arg("momentum"), nb::arg("memory"),
          nb::arg("rate"), nb::arg("correction"), nb::arg("smallest"), nb::arg("negligible"));
    nb::class_<Minibatches<T>>(m, name)
        .def(nb::init<nb::list, Vector<const double>, double, const Layout&, int, double>(),
             nb::arg("blocks"), nb::arg("weights").noconvert(), nb::arg("total_weight"), nb::arg("layout"),
             nb::arg("loss"), nb::arg("parameter"))
        .def("epoch", &Minibatches<T>::epoch, nb::kw_only(), nb::arg("params").noconvert(),
             nb::arg("mean").noconvert(), nb::arg("square").noconvert(), nb::arg("order").noconvert(),
             nb::arg("rates").noconvert(), nb::arg("corrections").noconvert(), nb::arg("momentum"),
             nb::arg("memory"), nb::arg("smallest"), nb::arg("negligible"), nb::arg("limit"),
             nb::arg("alpha"), nb::arg("strength").none(), nb::arg("units").none(), nb::arg("threads"));
}

}  // namespace

void define_minibatches(nb::module_& m) {
    define<float>(m, "FloatMinibatches");
    define<double>(m, "DoubleMinibatches");
}

}  // namespace tensormachines
