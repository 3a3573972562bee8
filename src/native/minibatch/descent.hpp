// Steps of Adam, each after an evaluation at the point that the last one has reached. The threads of a team
// share the params in stretches that depend on the basis alone; so sums over them do not depend on threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

#include "adam_moves.hpp"

namespace tensormachines {

// Splines of a Tensor Machine stay spread over their states: a thread that has a stretch of the params gathers
// its gradient, moves it, and spreads what it has got, while all of that is in its nearest cache. Any other
// model has its factors and their gradient in the order of the params.
template <class T>
class Descent {
    using Piece = typename SplineTables<T>::Piece;

public:
    Descent(const AdamVectors<T>& vectors, std::int64_t size, const Layout& layout,
            const SplineTables<T>* spline, Borders borders, Team& team)
        : vectors_(vectors), layout_(layout), head_(layout.head()), size_(size), columns_(layout.columns()),
          padded_(padded_columns<T>(layout)), spline_(spline), team_(team),
          point_(vectors.units ? size : 0) {
        for (std::int64_t i = 0; vectors.units && i < size; ++i)
            point_[i] = vectors.params[i] * vectors.units[i];
        space_.room.borders = std::move(borders);
        spline_ ? start_splines() : start_others();
    }

    // `splits` of the rows at the borders: see evaluate.hpp.
    Totals evaluate(const Block<T>& block, const LossChoice& loss, const Splits& splits) {
        space_.room.splits = &splits;
        Job<T> job = block.job(loss, layout_, 1, point());
        Totals totals(job);
        if (!spline_) {
            block.evaluate(job, point() + head_, team_, totals, numbers(gradient_), space_);
            return totals;
        }
        job.factors = numbers(states_);
        job.stride = padded_;
        tensormachines::evaluate(job, team_, totals, numbers(gradient_), space_.room);
        return totals;
    }

    // Steps along what was evaluated last; totals holds the gradient of the head.
    AdamSums step(const Totals& totals, const AdamStep<T>& step) {
        const std::int64_t count = std::int64_t(stretches_.size()), threads = team_.start();
        for (auto& taken : taken_) taken.store(false, std::memory_order_relaxed);
        team_.run([&](int t) {
            // A thread begins with stretches that it is likely to have in its cache, and ends with those that
            // the others have not got to.
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t s = (i + t * count / threads) % count;
                if (taken_[s].exchange(true)) continue;
                const T* gradient = spline_ ? gather(s, t) : numbers(gradient_) + stretches_[s].begin - head_;
                const std::int64_t begin = stretches_[s].begin;
                stretches_[s].sums = move_params(vectors_, begin, stretches_[s].size, gradient,
                                                 at_or_null(point_.data(), begin), step);
                if (spline_) spread(s, t);
            }
        });
        const std::vector<T> of_head(totals.head.begin(), totals.head.end());
        AdamSums all = move_head(vectors_, layout_, of_head.data(), point_.data(), step);
        for (const Stretch& stretch : stretches_) {
            all.penalty += stretch.sums.penalty;
            all.largest = larger(all.largest, stretch.sums.largest);
        }
        if (spline_) add_up_always();
        return all;
    }

private:
    static T* numbers(const Memory& memory) { return static_cast<T*>(memory.get()); }
    const T* point() const { return vectors_.units ? point_.data() : vectors_.params; }

    // Params that one thread moves.
    struct Stretch {
        std::int64_t begin, size;  // params
        std::int64_t first, last;  // pieces of the splines
        AdamSums sums;
    };

    void start_others() {
        constexpr std::int64_t at_once = 4096;  // params
        gradient_ = allocate((size_ - head_) * sizeof(T));
        for (std::int64_t i = head_; i < size_; i += at_once)
            add_stretch(i, std::min(at_once, size_ - i), 0, 0);
        taken_ = std::vector<std::atomic<bool>>(stretches_.size());
    }

    void start_splines() {
        pieces_ = spline_->pieces();
        std::int64_t most = 0;
        for (const SplineStretch& s : divide_splines(pieces_)) {
            add_stretch(head_ + s.function * columns_, s.functions * columns_, s.first, s.last);
            most = std::max(most, s.functions);
        }
        taken_ = std::vector<std::atomic<bool>>(stretches_.size());
        const std::int64_t in_states = spline_->states() * padded_;
        states_ = allocate(in_states * sizeof(T));
        gradient_ = allocate(in_states * sizeof(T));
        std::fill_n(numbers(states_), in_states, T(0));
        always_ = allocate(stretches_.size() * padded_ * sizeof(T));
        for (int t = 0; t < team_.start(); ++t) scratch_.push_back(allocate(most * padded_ * sizeof(T)));
        for (std::size_t s = 0; s < stretches_.size(); ++s) spread(s, 0);
        add_up_always();
    }

    void add_stretch(std::int64_t begin, std::int64_t size, std::int64_t first, std::int64_t last) {
        stretches_.push_back({begin, size, first, last, {0, 0}});
    }

    // Returns the gradient of the params of a stretch, in the scratch of thread t.
    const T* gather(std::int64_t s, int t) {
        const Stretch& stretch = stretches_[s];
        T* gathered = numbers(scratch_[t]);
        spline_->gather(&pieces_[stretch.first], &pieces_[stretch.first] + (stretch.last - stretch.first),
                        numbers(gradient_), padded_, gathered);
        if (columns_ < padded_)
            for (std::int64_t f = 1; f < stretch.size / columns_; ++f)
                std::copy_n(gathered + f * padded_, columns_, gathered + f * columns_);
        return gathered;
    }

    // Spreads the factors of a stretch at the point.
    void spread(std::int64_t s, int t) {
        const Stretch& stretch = stretches_[s];
        const T* factors = point() + stretch.begin;
        if (columns_ < padded_) {
            T* packed = numbers(scratch_[t]);
            copy_rows(stretch.size / columns_, columns_, factors, columns_, packed, padded_);
            factors = packed;
        }
        spline_->spread(&pieces_[stretch.first], &pieces_[stretch.first] + (stretch.last - stretch.first),
                        factors, padded_, numbers(states_), numbers(always_) + s * padded_);
    }

    void add_up_always() {
        tensormachines::add_up_always(numbers(always_), std::int64_t(stretches_.size()), padded_,
                                      numbers(states_) + (spline_->states() - 1) * padded_);
    }

    const AdamVectors<T> vectors_;
    const Layout layout_;
    const std::int64_t head_, size_, columns_, padded_;  // head: what comes before the factors
    const SplineTables<T>* const spline_;
    Team& team_;
    std::vector<T> point_;  // params * units, if there are units
    std::vector<Piece> pieces_;
    std::vector<Stretch> stretches_;
    std::vector<std::atomic<bool>> taken_;  // by a thread in this step
    Memory states_, gradient_, always_;     // always: what each stretch adds to the last state
    std::vector<Memory> scratch_;           // of the threads
    Workspace<T> space_;
};

}  // namespace tensormachines
