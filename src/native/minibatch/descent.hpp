// Steps of Adam, each after an evaluation at the point that the last one has reached. The threads of a team
// share the params in pieces that depend on the basis alone, so that sums over them do not depend on threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

#include "../block.hpp"

namespace tensormachines {

// Splines of a Tensor Machine stay spread over their states: a thread that has a piece of the params gathers
// its gradient, steps, and spreads what it has got, while all of that is in its nearest cache. Any other
// model has its factors and their gradient in the order of the params.
template <class T>
class Descent {
    using Piece = typename SplineTables<T>::Piece;

public:
    Descent(const AdamVectors<T>& vectors, std::int64_t size, const Layout& layout,
            const SplineTables<T>* spline, Borders borders, Team& team)
        : vectors_(vectors), layout_(layout), head_(layout.outputs), size_(size), columns_(layout.columns()),
          padded_(round_up(columns_, kernel<T>().lanes)), spline_(spline), team_(team),
          point_(vectors.units ? size : 0) {
        for (std::int64_t i = 0; vectors.units && i < size; ++i)
            point_[i] = vectors.params[i] * vectors.units[i];
        space_.room.borders = std::move(borders);
        spline_ ? start_splines() : start_others();
        sums_.resize(pieces_.size());
        taken_ = std::vector<std::atomic<bool>>(pieces_.size());
    }

    // `splits` of the rows at the borders: see evaluate.hpp.
    Totals evaluate(const Block<T>& block, int loss, const Splits& splits) {
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

    // Steps along what was evaluated last; totals holds the gradient of the biases.
    AdamSums step(const Totals& totals, const AdamStep<T>& step) {
        const std::int64_t pieces = std::int64_t(pieces_.size()), threads = team_.start();
        for (auto& taken : taken_) taken.store(false, std::memory_order_relaxed);
        team_.run([&](int t) {
            // A thread begins with pieces that it is likely to have in its cache, and ends with those that
            // the others have not got to.
            for (std::int64_t i = 0; i < pieces; ++i) {
                const std::int64_t p = (i + t * pieces / threads) % pieces;
                if (taken_[p].exchange(true)) continue;
                spline_ ? step_spline(p, t, step) : advance(p, step);
            }
        });
        AdamSums all = step_head(totals, step);
        for (const AdamSums& sums : sums_) {
            all.penalty += sums.penalty;
            all.largest = sums.largest <= all.largest ? all.largest : sums.largest;  // NaN stays
        }
        if (spline_) add_up_always();
        return all;
    }

    // The sum of strength * point^2, but for the biases.
    double penalty() const {
        double total = 0;
        for (std::int64_t i = head_; i < size_; ++i)
            total += double(point()[i]) * double(point()[i]) *
                     (vectors_.strength ? double(vectors_.strength[i]) : 1.0);
        return total;
    }

private:
    static T* numbers(const Memory& memory) { return static_cast<T*>(memory.get()); }
    static std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
    const T* point() const { return vectors_.units ? point_.data() : vectors_.params; }

    void start_others() {
        constexpr std::int64_t at_once = 4096;  // params
        gradient_ = allocate((size_ - head_) * sizeof(T));
        for (std::int64_t i = head_; i < size_; i += at_once)
            pieces_.push_back({0, 0, i - head_, std::min(at_once, size_ - i), nullptr, nullptr});
    }

    void start_splines() {
        pieces_ = spline_->pieces();
        std::int64_t most = 0;
        for (const Piece& piece : pieces_) most = std::max(most, piece.n_functions);
        const std::int64_t in_states = spline_->states() * padded_;
        states_ = allocate(in_states * sizeof(T));
        gradient_ = allocate(in_states * sizeof(T));
        std::fill_n(numbers(states_), in_states, T(0));
        always_ = allocate(pieces_.size() * padded_ * sizeof(T));
        for (int t = 0; t < team_.start(); ++t) scratch_.push_back(allocate(most * padded_ * sizeof(T)));
        for (std::size_t p = 0; p < pieces_.size(); ++p) spread(p, 0);
        add_up_always();
    }

    // A stretch of the params that is not a spline: `functions` counts params.
    void advance(std::int64_t p, const AdamStep<T>& step) {
        const Piece& piece = pieces_[p];
        sums_[p] = stretch(head_ + piece.function, piece.n_functions, numbers(gradient_) + piece.function, step);
    }

    void step_spline(std::int64_t p, int t, const AdamStep<T>& step) {
        const Piece& piece = pieces_[p];
        T* gathered = numbers(scratch_[t]);
        spline_->gather(piece, numbers(gradient_), padded_, gathered);
        if (columns_ < padded_)
            for (std::int64_t f = 1; f < piece.n_functions; ++f)
                std::copy_n(gathered + f * padded_, columns_, gathered + f * columns_);
        sums_[p] = stretch(head_ + piece.function * columns_, piece.n_functions * columns_, gathered, step);
        spread(p, t);
    }

    // Spreads the factors of a piece at the point.
    void spread(std::int64_t p, int t) {
        const Piece& piece = pieces_[p];
        T *packed = numbers(scratch_[t]), *always = numbers(always_) + p * padded_;
        copy_rows(piece.n_functions, columns_, point() + head_ + piece.function * columns_, columns_, packed,
                  padded_);
        std::fill_n(always, padded_, T(0));
        spline_->spread(piece, packed, padded_, numbers(states_), always);
    }

    void add_up_always() {
        T* last = numbers(states_) + (spline_->states() - 1) * padded_;
        std::fill_n(last, padded_, T(0));
        for (std::size_t p = 0; p < pieces_.size(); ++p)
            for (std::int64_t k = 0; k < padded_; ++k) last[k] += numbers(always_)[p * padded_ + k];
    }

    AdamSums step_head(const Totals& totals, AdamStep<T> step) {
        const std::vector<T> gradient(totals.bias.begin(), totals.bias.end());
        step.scale = 1;
        step.alpha = 0;
        return {0, stretch(0, head_, gradient.data(), step).largest};
    }

    AdamSums stretch(std::int64_t begin, std::int64_t size, const T* gradient, const AdamStep<T>& step) {
        const AdamVectors<T>& v = vectors_;
        return kernel<T>().adam_step(size,
                                     {v.params + begin, v.mean + begin, v.square + begin,
                                      v.strength ? v.strength + begin : nullptr,
                                      v.units ? v.units + begin : nullptr},
                                     gradient, point_.data() + begin, step);
    }

    const AdamVectors<T> vectors_;
    const Layout layout_;
    const std::int64_t head_, size_, columns_, padded_;  // head: the biases, which come first
    const SplineTables<T>* const spline_;
    Team& team_;
    std::vector<T> point_;  // params * units, if there are units
    std::vector<Piece> pieces_;
    std::vector<AdamSums> sums_;            // of the pieces
    std::vector<std::atomic<bool>> taken_;  // by a thread in this step
    Memory states_, gradient_, always_;  // always: what each piece adds to the last state
    std::vector<Memory> scratch_;       // of the threads
    Workspace<T> space_;
};

}  // namespace tensormachines
