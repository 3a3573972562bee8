// Steps of Adam on CSR rows, where a minibatch has few of the columns. A step reads and moves the
// coefficients of these columns alone, and their moments count the steps of their own column only (as in
// "lazy" Adam). What the penalty does to the others meanwhile is made up for when they are needed next.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "adam_moves.hpp"
#include "course.hpp"

namespace tensormachines {

// The rows of a block, whose columns are numbered from 0.
template <class T>
struct FewColumns {
    std::vector<std::int32_t> columns;  // of the basis
    std::vector<std::int32_t> indptr, indices;
    std::vector<T> shift, scale, zero_row;

    std::int64_t size() const { return std::int64_t(columns.size()); }

    // The job of the block, for factors of these columns.
    Job<T> job(Job<T> of_block) const {
        Job<T> job = of_block;
        job.indptr32 = indptr.data();
        job.indices32 = indices.data();
        job.indptr64 = job.indices64 = nullptr;
        job.columns = job.width = size();
        if (job.basis.shift) {
            job.basis.shift = shift.data();
            job.basis.scale = scale.data();
        }
        if (job.zero_row) job.zero_row = zero_row.data();
        return job;
    }
};

// Numbers the columns of blocks in the same basis.
template <class T>
class ColumnNumbers {
public:
    explicit ColumnNumbers(const Job<T>& job) : always_(filled_columns(job)), number_(job.width, NONE) {}

    // How many columns every row has in its basis.
    std::int64_t always() const { return std::int64_t(always_.size()); }

    FewColumns<T> few_columns(const Job<T>& job) {
        FewColumns<T> few;
        for (std::int64_t row = 0; row <= job.rows; ++row)
            few.indptr.push_back(std::int32_t(job.indptr32 ? job.indptr32[row] : job.indptr64[row]));
        few.indices.resize(few.indptr.back());
        for (std::size_t e = 0; e < few.indices.size(); ++e)
            few.indices[e] = number(few, job.indices32 ? job.indices32[e] : job.indices64[e]);
        for (const std::int64_t column : always_) number(few, column);
        for (const std::int32_t column : few.columns) {
            const bool appended = column >= job.columns;  // by the basis
            if (job.basis.shift) {
                few.shift.push_back(appended ? T(0) : job.basis.shift[column]);
                few.scale.push_back(appended ? T(0) : job.basis.scale[column]);
            }
            if (job.zero_row) few.zero_row.push_back(job.zero_row[column]);
            number_[column] = NONE;
        }
        return few;
    }

private:
    static constexpr std::int32_t NONE = -1;

    std::int32_t number(FewColumns<T>& few, std::int64_t column) {
        if (number_[column] == NONE) {
            number_[column] = std::int32_t(few.size());
            few.columns.push_back(std::int32_t(column));
        }
        return number_[column];
    }

    const std::vector<std::int64_t> always_;
    std::vector<std::int32_t> number_;  // of each column in the block at hand
};

// Returns the columns of each block; nothing if a block has more than a small share of all columns.
template <class T>
std::vector<FewColumns<T>> number_columns(const std::vector<Job<T>>& blocks) {
    constexpr std::int64_t share = 16;  // columns for each one that a block has
    const Job<T>& first = blocks[0];
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    if (!(first.indptr32 || first.indptr64) || first.width > largest) return {};
    ColumnNumbers<T> numbers(first);
    std::int64_t left = first.width / share * std::int64_t(blocks.size());
    std::vector<FewColumns<T>> found;
    for (const Job<T>& job : blocks) {
        const std::int64_t entries = job.indptr32 ? job.indptr32[job.rows] : job.indptr64[job.rows];
        if (numbers.always() > left || entries > largest) return {};
        found.push_back(numbers.few_columns(job));
        left -= found.back().size();
        if (left < 0) return {};
    }
    return found;
}

template <class T>
class SparseDescent {
public:
    // `penalty` is the sum of strength * point^2 over the factors at the start.
    SparseDescent(const AdamVectors<T>& vectors, std::int64_t size, const Layout& layout,
                  const std::vector<FewColumns<T>>& blocks, const Course<T>& course, double penalty,
                  Team& team)
        : vectors_(vectors), layout_(layout), head_(layout.head()), columns_(layout.columns()),
          blocks_(blocks), course_(course), team_(team), penalty_(penalty),
          steps_taken_((size - head_) / columns_), moves_(course.steps + 1), pulls_(course.steps + 1),
          head_point_(vectors.params, vectors.params + head_) {
        std::int64_t most = 1;
        for (const FewColumns<T>& few : blocks) most = std::max(most, few.size());
        factors_ = allocate(most * columns_ * sizeof(T));
        gradient_ = allocate(most * columns_ * sizeof(T));
        sums_.resize((most + AT_ONCE - 1) / AT_ONCE);
        for (std::int64_t i = 0; vectors.units && i < head_; ++i) head_point_[i] *= vectors.units[i];
        for (std::int64_t i = 0; course.moves() && i < course.steps; ++i) {
            const double move = course.rates[i] / std::sqrt(course.corrections[i]);
            moves_[i + 1] = moves_[i] + move;
            pulls_[i + 1] = pulls_[i] + move * course.share(i);
        }
    }

    // Evaluates the block of step i.
    Totals evaluate(const Block<T>& block, const LossChoice& loss, std::int64_t i) {
        const FewColumns<T>& few = blocks_[course_.order[i]];
        T* const factors = numbers(factors_);
        each_stretch(few, [&](std::int64_t s, std::int64_t begin, std::int64_t end) {
            sums_[s] = {0, 0};
            for (std::int64_t c = begin; c < end; ++c) {
                const std::int64_t column = few.columns[c];
                if (course_.moves()) sums_[s].penalty += bring_up_to(i, column);
                for (std::int64_t k = 0; k < columns_; ++k)
                    factors[c * columns_ + k] = point(place(column) + k);
            }
        });
        add_up_sums(few);
        Job<T> job = few.job(block.job(loss, layout_, 1, head_point_.data()));
        job.factors = factors;
        Totals totals(job);
        tensormachines::evaluate(job, team_, totals, numbers(gradient_), room_);
        return totals;
    }

    // Takes step i along what was evaluated last; totals holds the gradient of the head.
    AdamSums step(const Totals& totals, std::int64_t i) {
        const FewColumns<T>& few = blocks_[course_.order[i]];
        const AdamStep<T> step = course_.step(i);
        each_stretch(few, [&](std::int64_t s, std::int64_t begin, std::int64_t end) {
            sums_[s] = {0, 0};
            for (std::int64_t c = begin; c < end; ++c) {
                const std::int64_t column = few.columns[c];
                const AdamSums moved = move_params(vectors_, place(column), columns_,
                                                   numbers(gradient_) + c * columns_,
                                                   numbers(factors_) + c * columns_, step);
                sums_[s].penalty += penalty_of(column) - moved.penalty;
                sums_[s].largest = larger(sums_[s].largest, moved.largest);
                steps_taken_[column] = i + 1;
            }
        });
        const std::vector<T> of_head(totals.head.begin(), totals.head.end());
        AdamSums all = move_head(vectors_, layout_, of_head.data(), head_point_.data(), step);
        if (!vectors_.units) std::copy_n(vectors_.params, head_, head_point_.begin());
        all.penalty += penalty_;
        all.largest = larger(all.largest, add_up_sums(few));
        return all;
    }

    // Brings all columns up to the end of the course.
    void finish() {
        for (std::size_t column = 0; column < steps_taken_.size(); ++column)
            bring_up_to(course_.steps, std::int64_t(column));
    }

private:
    static constexpr std::int64_t AT_ONCE = 512;  // columns of a stretch

    static T* numbers(const Memory& memory) { return static_cast<T*>(memory.get()); }
    std::int64_t place(std::int64_t column) const { return head_ + column * columns_; }
    T point(std::int64_t i) const {
        return vectors_.units ? vectors_.params[i] * vectors_.units[i] : vectors_.params[i];
    }

    // Adds what the stretches found to the penalty; returns their largest entry.
    double add_up_sums(const FewColumns<T>& few) {
        double largest = 0;
        for (std::int64_t s = 0; s * AT_ONCE < few.size(); ++s) {
            penalty_ += sums_[s].penalty;
            largest = larger(largest, sums_[s].largest);
        }
        return largest;
    }

    // Calls body(stretch, first column, last column); threads share the stretches.
    template <class Body>
    void each_stretch(const FewColumns<T>& few, Body body) {
        const std::int64_t stretches = (few.size() + AT_ONCE - 1) / AT_ONCE, threads = team_.start();
        team_.run([&](int t) {
            for (std::int64_t s = stretches * t / threads; s < stretches * (t + 1) / threads; ++s)
                body(s, s * AT_ONCE, std::min(few.size(), (s + 1) * AT_ONCE));
        });
    }

    // Moves the params of a column as the penalty alone does until step i: dp = -rate * alpha * p /
    // sqrt(square), with an implicit step, which never passes 0. Params that have had no gradient yet move at
    // the full rate, as Adam moves all whose gradient keeps its sign. Returns the change of the penalty.
    double bring_up_to(std::int64_t i, std::int64_t column) {
        const std::int64_t from = std::exchange(steps_taken_[column], i);
        const T pull = T(pulls_[i] - pulls_[from]), most = T(moves_[i] - moves_[from]);
        if (!(pull > 0)) return 0;
        const double before = penalty_of(column);
        for (std::int64_t k = place(column); k < place(column) + columns_; ++k) {
            const T unit = vectors_.units ? vectors_.units[k] : T(1),
                    strength = vectors_.strength ? vectors_.strength[k] : T(1), square = vectors_.square[k];
            T& param = vectors_.params[k];
            if (square > 0)
                param /= 1 + pull * strength * unit * unit / std::sqrt(square);
            else
                param -= std::clamp(param, -most, most);
        }
        return penalty_of(column) - before;
    }

    double penalty_of(std::int64_t column) const {
        double total = 0;
        for (std::int64_t k = place(column); k < place(column) + columns_; ++k) {
            const T at = point(k), pulled = vectors_.strength ? vectors_.strength[k] * at : at;
            total += double(pulled * at);
        }
        return total;
    }

    const AdamVectors<T> vectors_;
    const Layout layout_;
    const std::int64_t head_, columns_;  // params before the factors, and factors of a column of X
    const std::vector<FewColumns<T>>& blocks_;
    const Course<T>& course_;
    Team& team_;
    double penalty_;  // on the factors
    std::vector<std::int64_t> steps_taken_;  // by the params of each column
    std::vector<double> moves_, pulls_;      // up to each step: sums of the rate, and of the rate times alpha
    std::vector<T> head_point_;
    Memory factors_, gradient_;   // of the columns of the block at hand
    std::vector<AdamSums> sums_;  // of the stretches; the penalty is the change of it
    Room room_;
};

}  // namespace tensormachines
