// Outputs of a fitted model for rows as the user has them, some rows at a time, so that nothing as large as
// the rows is needed. See tensormachines._model.machine.
#pragma once
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "block.hpp"
#include "spline_states.hpp"

namespace tensormachines {

// The columns of a spline basis, bound once.
struct BoundColumns {
    Array<const double, 1> knots;
    Array<const std::int64_t, 1> first, reference;
    Array<const std::uint8_t, 1> category, missing;

    std::int64_t count() const { return std::int64_t(reference.size()); }
    SplineColumns view() const {
        return {count(), knots.data(), first.data(), reference.data(), category.data(), missing.data()};
    }
    void check() const {
        require(has_shape(first, count() + 1) && has_shape(category, count()) && has_shape(missing, count()),
                "every column needs its first state, its reference and its kind");
        require(first(0) == 0 && first(count()) == std::int64_t(knots.size()), "every state needs a knot");
        for (std::int64_t j = 0; j < count(); ++j)
            require(first(j + 1) >= first(j) + missing(j), "the states of the columns must follow each other");
    }
};

// The factors of a Tensor Machine without terms that are 0: see FittedMachine.
template <class T>
struct KeptTerms {
    std::vector<std::int64_t> terms;
    std::vector<T> weights;
    std::int64_t stride;
    Memory factors;

    KeptTerms(const Layout& layout, const T* head, const Array<const T, 2>& all) {
        const std::int64_t places = std::int64_t(all.shape(0)), width = std::int64_t(all.shape(1));
        std::vector<std::uint8_t> present(width);
        for (std::int64_t i = 0; i < places; ++i)
            for (std::int64_t k = 0; k < width; ++k) present[k] |= all(i, k) != T(0);
        std::vector<std::int64_t> kept;
        for (std::int64_t o = 0; o < layout.outputs; ++o) kept.push_back(o);
        const std::int64_t rank = layout.rank;
        std::int64_t start = layout.outputs;
        for (int s = 0; s < layout.sets(); ++s)
            for (int p = 2; p <= layout.degree; ++p) {
                std::vector<std::int64_t> of_degree;
                for (std::int64_t i = start; i < start + rank; ++i) {
                    bool whole = true;
                    for (int k = 0; k < p; ++k) whole = whole && present[i + k * rank];
                    if (!whole) continue;
                    of_degree.push_back(i);
                    const T* own = head + layout.outputs + (p - 2) * rank + (i - start);
                    for (int o = 0; layout.share && o < layout.outputs; ++o)
                        weights.push_back(own[o * layout.terms()]);
                }
                for (int k = 0; k < p; ++k)
                    for (const std::int64_t i : of_degree) kept.push_back(i + k * rank);
                terms.push_back(std::int64_t(of_degree.size()));
                start += p * rank;
            }
        const std::int64_t lanes = kernel<T>().lanes, count = std::int64_t(kept.size());
        stride = (count + lanes - 1) / lanes * lanes;
        factors = allocate(std::size_t(places * stride) * sizeof(T));
        T* to = static_cast<T*>(factors.get());
        std::fill_n(to, places * stride, T(0));
        for (std::int64_t i = 0; i < places; ++i)
            for (std::int64_t k = 0; k < count; ++k) to[i * stride + k] = all(i, kept[k]);
    }
};

// The numbers of an affine basis, bound once: see Basis.
template <class T>
struct BoundBasis {
    std::int64_t columns;
    Optional<T> shift, scale;
    T clip, constant;
    bool unit_rows;

    std::int64_t width() const { return columns + (constant != T(0)); }
    Basis<T> view() const { return {data_or_null(shift), data_or_null(scale), clip, constant, unit_rows}; }
    void check() const {
        require(!shift == !scale && absent_or_has_shape(shift, columns) && absent_or_has_shape(scale, columns),
                "shift and scale must have one entry per column");
    }
};

// A model whose factors no longer change, in one of the two kinds of basis.
template <class T>
class Predictor {
public:
    // factors (states or columns in the basis, columns of the layout); head of the layout
    Predictor(std::optional<BoundColumns> splines, std::optional<BoundBasis<T>> affine, const Layout& layout,
              Array<const T, 1> head, Array<const T, 2> factors)
        : splines_(std::move(splines)), affine_(std::move(affine)), layout_(layout), head_(head),
          all_(factors) {
        splines_ ? splines_->check() : affine_->check();
        const std::int64_t places = splines_ ? std::int64_t(splines_->knots.size()) + 1 : affine_->width();
        require(has_shape(head, layout.head()), "head has the wrong shape");
        require(has_shape(factors, places, layout.columns()), "factors have the wrong shape");
        if (layout.model == Model::tensor) kept_.emplace(layout, head.data(), factors);
    }

    std::int64_t columns() const { return splines_ ? splines_->count() : affine_->columns; }
    int outputs() const { return layout_.outputs; }

    // x (rows, columns) to result (rows, outputs); may run without Python's lock
    void operator()(const T* x, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::int64_t rows,
                    T* result, int threads) const {
        const std::int64_t pieces = (rows + ROWS - 1) / ROWS;
        std::atomic<std::int64_t> claimed{0};
        Team team(int(std::min<std::int64_t>(threads, std::max<std::int64_t>(1, pieces))));
        std::vector<Memory> scratch;
        std::vector<Room> rooms(team.start());
        const SplineColumns columns = splines_ ? splines_->view() : SplineColumns{};
        const FittedMachine<T> machine = kept_ ? fitted(columns) : FittedMachine<T>{};
        const std::size_t bytes = kept_ ? kernel<T>().prediction_bytes(machine, std::min(rows, ROWS)) : 0;
        for (int t = 0; t < team.start(); ++t) scratch.push_back(allocate(bytes));
        team.run([&](int t) {
            for (std::int64_t p; (p = claimed++) < pieces;) {
                const std::int64_t begin = p * ROWS, count = std::min(rows - begin, ROWS);
                const T* from = x + begin * row_stride;
                T* to = result + begin * layout_.outputs;
                if (kept_)
                    kernel<T>().predict(machine, from, row_stride, column_stride, count, scratch[t].get(), to);
                else
                    other_model(from, row_stride, column_stride, count, to, rooms[t]);
            }
        });
    }

private:
    static constexpr std::int64_t ROWS = 512;  // of a piece

    FittedMachine<T> fitted(const SplineColumns& columns) const {
        return {splines_ ? &columns : nullptr,
                affine_ ? affine_->view() : Basis<T>{},
                this->columns(),
                layout_.degree,
                layout_.outputs,
                layout_.sets(),
                kept_->terms.data(),
                static_cast<const T*>(kept_->factors.get()),
                kept_->stride,
                std::int64_t(all_.shape(0)),
                head_.data(),
                layout_.share ? kept_->weights.data() : nullptr};
    }

    // Any model that the kernel evaluates.
    void other_model(const T* x, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::int64_t rows,
                     T* result, Room& room) const {
        Job<T> job{};
        std::vector<std::int32_t> indptr, states;
        std::vector<T> shares;
        job.rows = rows;
        job.columns = job.width = std::int64_t(all_.shape(0));
        if (splines_) {
            indptr.resize(rows + 1);
            states.resize(rows * (2 * columns() + 1));
            shares.resize(states.size());
            write_shares(x, row_stride, column_stride, rows, indptr.data(), states.data(), shares.data());
            job.x = shares.data();
            job.indptr32 = indptr.data();
            job.indices32 = states.data();
            job.basis.clip = std::numeric_limits<T>::infinity();
        } else {
            job.x = x;
            job.row_stride = row_stride;
            job.column_stride = column_stride;
            job.columns = columns();
            job.basis = affine_->view();
            job.filled = true;
        }
        set_model(job, layout_, 1, head_.data());
        job.want = Want::outputs;
        job.factors = all_.data();
        job.result = result;
        Totals totals(job);
        Team alone(1);
        evaluate(job, alone, totals, static_cast<T*>(nullptr), room);
    }

    void write_shares(const T* x, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::int64_t rows,
                      std::int32_t* indptr, std::int32_t* states, T* shares) const {
        const SplineColumns columns = splines_->view();
        std::int64_t entries = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            entries += shares_of_row<T, T>(columns, x + row * row_stride, column_stride, states + entries,
                                           shares + entries);
            states[entries] = std::int32_t(all_.shape(0) - 1);  // which every row is in
            shares[entries++] = T(1);
            indptr[row + 1] = std::int32_t(entries);
        }
    }

    std::optional<BoundColumns> splines_;
    std::optional<BoundBasis<T>> affine_;
    Layout layout_;
    Array<const T, 1> head_;
    Array<const T, 2> all_;
    std::optional<KeptTerms<T>> kept_;
};

}  // namespace tensormachines
