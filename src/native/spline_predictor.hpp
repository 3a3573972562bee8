// Outputs of a fitted model for rows as the user has them: shares of states and their products with factors,
// a few rows at a time, so that nothing as large as the rows is needed. See tensormachines._model.machine.
#pragma once
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

template <class T>
class SplinePredictor {
public:
    // factors (states, columns of the layout), those of the states; head of the layout
    SplinePredictor(BoundColumns columns, const Layout& layout, Array<const T, 1> head,
                    Array<const T, 2> factors)
        : columns_(std::move(columns)), layout_(layout), head_(head), states_(std::int64_t(factors.shape(0))) {
        columns_.check();
        require(has_shape(head, layout.head()), "head has the wrong shape");
        require(has_shape(factors, std::int64_t(columns_.knots.size()) + 1, layout.columns()),
                "factors have the wrong shape");
        const std::int64_t lanes = kernel<T>().lanes, width = layout.columns();
        stride_ = layout.model == Model::tensor ? (width + lanes - 1) / lanes * lanes : width;
        factors_ = allocate(std::size_t(states_ * stride_) * sizeof(T));
        copy_rows(states_, width, factors.data(), width, static_cast<T*>(factors_.get()), stride_);
    }

    // x (rows, columns) to result (rows, outputs)
    void outputs(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x, Array<T, 2> result,
                 int threads) const {
        const std::int64_t rows = std::int64_t(x.shape(0));
        require(std::int64_t(x.shape(1)) == columns_.count() && has_shape(result, rows, layout_.outputs),
                "the rows or the result have the wrong shape");
        const T* from = x.data();
        T* to = result.data();
        const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
        const std::int64_t pieces = (rows + ROWS - 1) / ROWS;
        nb::gil_scoped_release release;
        std::atomic<std::int64_t> claimed{0};
        Team team(int(std::min<std::int64_t>(threads, std::max<std::int64_t>(1, pieces))));
        std::vector<Scratch> scratch;
        for (int t = 0; t < team.start(); ++t) scratch.emplace_back(columns_.count(), std::min(rows, ROWS));
        team.run([&](int t) {
            for (std::int64_t p; (p = claimed++) < pieces;) {
                const std::int64_t begin = p * ROWS, end = std::min(rows, begin + ROWS);
                piece(scratch[t], from + begin * row_stride, row_stride, column_stride, end - begin,
                      to + begin * layout_.outputs);
            }
        });
    }

private:
    static constexpr std::int64_t ROWS = 128;  // at a time

    struct Scratch {
        std::vector<std::int32_t> indptr, states;
        std::vector<T> shares;
        Room room;
        Scratch(std::int64_t columns, std::int64_t rows)
            : indptr(rows + 1), states(rows * (2 * columns + 1)), shares(rows * (2 * columns + 1)) {}
    };

    void piece(Scratch& scratch, const T* x, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
               std::int64_t rows, T* result) const {
        const SplineColumns columns = columns_.view();
        std::int64_t entries = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            entries += shares_of_row<T, T>(columns, x + row * row_stride, column_stride,
                                           scratch.states.data() + entries, scratch.shares.data() + entries);
            scratch.states[entries] = std::int32_t(states_ - 1);  // which every row is in
            scratch.shares[entries++] = T(1);
            scratch.indptr[row + 1] = std::int32_t(entries);
        }
        Job<T> job{};
        job.x = scratch.shares.data();
        job.indptr32 = scratch.indptr.data();
        job.indices32 = scratch.states.data();
        job.rows = rows;
        job.columns = job.width = states_;
        job.basis.clip = std::numeric_limits<T>::infinity();
        set_model(job, layout_, 1, head_.data());
        job.want = Want::outputs;
        job.stride = stride_;
        job.factors = static_cast<const T*>(factors_.get());
        job.result = result;
        Totals totals(job);
        Team alone(1);
        evaluate(job, alone, totals, static_cast<T*>(nullptr), scratch.room);
    }

    BoundColumns columns_;
    Layout layout_;
    Array<const T, 1> head_;
    std::int64_t states_, stride_;
    Memory factors_;
};

}  // namespace tensormachines
