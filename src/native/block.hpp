// Blocks of rows as Python binds them, and their evaluation: see tensormachines._model.block and kernel.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "evaluate.hpp"
#include "kernel.hpp"
#include "spline_tables.hpp"

namespace tensormachines {

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
    bool share;

    Layout(int code, int degree, int rank, int outputs, bool share)
        : model(Model(code)), degree(degree), rank(rank), outputs(outputs), share(share) {}
    int sets() const { return share ? 1 : outputs; }
    std::int64_t terms() const { return std::int64_t(degree - 1) * rank; }  // of a set
    std::int64_t set_columns() const {
        const std::int64_t q = degree;
        return rank * (model == Model::tensor ? q * (q + 1) / 2 - 1 : q - 1);
    }
    std::int64_t columns() const { return outputs + sets() * set_columns(); }  // factors of a feature
    std::int64_t head() const { return outputs * (share ? 1 + terms() : 1); }
};

// The part of a job that says what the model is, but for its factors.
template <class T>
void set_model(Job<T>& job, const Layout& layout, int models, const T* head) {
    job.model = layout.model;
    job.degree = layout.degree;
    job.rank = layout.rank;
    job.outputs = layout.outputs;
    job.models = models;
    job.sets = layout.sets();
    job.share = layout.share;
    job.set_columns = layout.set_columns();
    job.columns_of_model = layout.columns();
    job.head_size = layout.head();
    job.factor_columns = job.stride = job.columns_of_model * job.models;
    job.head = head;
}

// A loss as Python names it: see tensormachines._model.losses.
struct LossChoice {
    int code;
    double parameter;
};

// Memory that evaluations need, kept between those that follow each other; the first three are for splines.
template <class T>
struct Workspace {
    Memory factors, states, gradient;
    Room room;
    std::size_t bytes = 0;

    void reserve(std::size_t wanted) {
        if (wanted <= bytes) return;
        for (Memory* memory : {&factors, &states, &gradient}) *memory = allocate(wanted);
        bytes = wanted;
    }
};

template <class T>
void copy_rows(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride) {
    for (std::int64_t j = 0; j < rows; ++j, from += from_stride, to += to_stride) {
        std::copy_n(from, columns, to);
        if (to_stride > columns) std::fill(to + columns, to + to_stride, T(0));
    }
}

// Rows with their basis, targets and weights. Everything that is the same in all evaluations of a block is
// checked here, once; the arrays stay alive as long as this does.
template <class T>
class Block {
public:
    Block(Values<T> x, std::optional<Index> indptr, std::optional<Index> indices, std::int64_t columns,
          Optional<T> shift, Optional<T> scale, T clip, T constant, bool unit_rows, Optional<T> zero_row,
          nb::object tables, std::optional<Array<const T, 2>> y, Optional<T> weight,
          std::optional<Array<const T, 2>> offset)
        : x_(std::move(x)), indptr_(std::move(indptr)), indices_(std::move(indices)),
          shift_(std::move(shift)), scale_(std::move(scale)), zero_row_(std::move(zero_row)),
          tables_(std::move(tables)), y_(std::move(y)), weight_(std::move(weight)),
          offset_(std::move(offset)) {
        rows_.x = x_.data();
        rows_.columns = columns;
        rows_.width = columns + (constant != T(0) ? 1 : 0);
        x_.ndim() == 2 ? read_dense() : read_sparse();
        require(!shift_ == !scale_ && absent_or_has_shape(shift_, columns) &&
                    absent_or_has_shape(scale_, columns),
                "shift and scale must have one entry per column");
        require(absent_or_has_shape(zero_row_, rows_.width), "zero_row has the wrong length");
        check_targets();
        rows_.basis = {data_or_null(shift_), data_or_null(scale_), clip, constant, unit_rows};
        rows_.zero_row = data_or_null(zero_row_);
        rows_.filled = rows_.zero_row || x_.ndim() == 2;
        rows_.y = data_or_null(y_);
        rows_.weight = data_or_null(weight_);
        rows_.offset = data_or_null(offset_);
        if (!tables_.is_none()) {
            spline_ = nb::cast<const SplineTables<T>*>(tables_);
            require(x_.ndim() == 1 && spline_->states() == rows_.width, "the rows have other states");
        }
    }

    // Packed rows of shares: see tensormachines._model.packed_shares. `starts` are those of rows, entries,
    // runs.
    Block(Array<const std::uint32_t, 1> entries, Array<const std::uint32_t, 1> runs,
          Array<const std::int64_t, 1> first, std::array<Array<const std::int64_t, 1>, 3> starts,
          nb::object tables, std::optional<Array<const T, 2>> y, Optional<T> weight,
          std::optional<Array<const T, 2>> offset)
        : tables_(std::move(tables)), y_(std::move(y)), weight_(std::move(weight)), offset_(std::move(offset)),
          kept_{nb::cast(entries), nb::cast(runs), nb::cast(first), nb::cast(starts)} {
        spline_ = nb::cast<const SplineTables<T>*>(tables_);
        const auto& [of_rows, of_entries, of_runs] = starts;
        const std::int64_t columns = std::int64_t(first.size()) - 1,
                           pieces = std::int64_t(of_rows.size()) - 1;
        require(columns >= 0 && pieces >= 0 && has_shape(of_entries, pieces * columns + 1) &&
                    has_shape(of_runs, pieces * columns + 1),
                "every column of every piece needs its entries and runs");
        require(of_entries(pieces * columns) == std::int64_t(entries.size()) &&
                    of_runs(pieces * columns) == std::int64_t(runs.size()),
                "there are not as many entries or runs as the pieces have");
        require(first(columns) + 1 == spline_->states(), "the rows have other states");
        packed_ = {columns,           pieces,         first.data(),   of_rows.data(),
                   of_entries.data(), of_runs.data(), entries.data(), runs.data()};
        rows_.packed = &packed_;
        rows_.rows = of_rows(pieces);
        rows_.columns = rows_.width = spline_->states();
        rows_.y = data_or_null(y_);
        rows_.weight = data_or_null(weight_);
        rows_.offset = data_or_null(offset_);
        check_targets();
    }
    Block(const Block&) = delete;  // a job points to what it keeps
    Block& operator=(const Block&) = delete;

    // The number of features: columns of the basis.
    std::int64_t features() const { return spline_ ? spline_->functions() : rows_.width; }
    std::int64_t rows() const { return rows_.rows; }

    // The entries of packed rows, or -1; and the products with each column of factors of a step of these.
    std::int64_t packed_entries() const {
        return rows_.packed ? packed_.first_entry[packed_.pieces * packed_.columns] : -1;
    }
    std::int64_t products() const { return 4 * packed_entries() + 2 * spline_->products(); }

    // A job of `models` models, still without factors.
    Job<T> job(Want want, const Layout& layout, int models, const T* head) const {
        require(!rows_.packed || layout.model == Model::tensor,
                "a factorization machine needs unpacked rows");
        Job<T> job = rows_;
        job.want = want;
        set_model(job, layout, models, head);
        return job;
    }

    // The same for losses and gradients.
    Job<T> job(const LossChoice& loss, const Layout& layout, int models, const T* head) const {
        require(loss.code >= 0 && loss.code <= int(Loss::huber), "unknown loss");
        Job<T> job = this->job(Want::gradient, layout, models, head);
        job.loss = Loss(loss.code);
        job.parameter = T(loss.parameter);
        job.targets = job.loss == Loss::multinomial ? 1 : job.outputs;
        require(y_ && has_shape(*y_, job.rows, job.targets),
                "y has the wrong shape: it must have a column for each output, or one of class numbers");
        require(!offset_ || has_shape(*offset_, job.rows, job.outputs),
                "offset has the wrong shape: it must have a column for each output");
        return job;
    }

    // The functions of a spline basis, or null.
    const SplineTables<T>* spline() const { return spline_; }

    // Evaluates with factors (features, factor_columns), and writes their gradient where it is wanted.
    void evaluate(Job<T> job, const T* factors, Team& team, Totals& totals, T* gradient,
                  Workspace<T>& space) const {
        const std::int64_t columns = job.factor_columns;
        if (!spline_) {
            job.factors = factors;
            return tensormachines::evaluate(job, team, totals, gradient, space.room);
        }
        const std::int64_t lanes = kernel<T>().lanes, padded = (columns + lanes - 1) / lanes * lanes;
        space.reserve(std::size_t(std::max(features(), spline_->states()) * padded) * sizeof(T));
        T *packed = static_cast<T*>(space.factors.get()), *states = static_cast<T*>(space.states.get()),
          *of_states = static_cast<T*>(space.gradient.get());
        copy_rows(features(), columns, factors, columns, packed, padded);
        spline_->spread(packed, padded, states);
        // A factorization machine reads rows of factors without padding.
        job.stride = job.model == Model::tensor ? padded : columns;
        if (job.stride < padded) {
            copy_rows(spline_->states(), columns, states, padded, packed, columns);
            std::swap(packed, states);
        }
        job.factors = states;
        tensormachines::evaluate(job, team, totals, gradient ? of_states : nullptr, space.room);
        if (!gradient) return;
        if (job.stride < padded) {
            copy_rows(spline_->states(), columns, of_states, columns, states, padded);
            std::swap(of_states, states);
        }
        spline_->gather(of_states, padded, packed);
        copy_rows(features(), columns, packed, padded, gradient, columns);
    }

private:
    void check_targets() const {
        require(!y_ || std::int64_t(y_->shape(0)) == rows_.rows, "y has the wrong shape");
        require(absent_or_has_shape(weight_, rows_.rows), "weight has the wrong length");
    }

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
        require(x_.size() < 2 || x_.stride(0) == 1, "the values of a CSR matrix must be contiguous");
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

    Values<T> x_;
    std::optional<Index> indptr_, indices_;
    Optional<T> shift_, scale_, zero_row_;
    nb::object tables_;  // None, or what `spline_` points to
    const SplineTables<T>* spline_ = nullptr;
    std::optional<Array<const T, 2>> y_;
    Optional<T> weight_;
    std::optional<Array<const T, 2>> offset_;
    nb::object kept_[4];  // the arrays of packed rows
    PackedShares packed_{};
    Job<T> rows_{};  // the part of a job that is the same in every evaluation
};

}  // namespace tensormachines
