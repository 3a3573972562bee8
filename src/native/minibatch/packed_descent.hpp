// Steps of Adam on packed rows of splines. A thread has some columns of the factors for a whole epoch: it
// alone reads and writes their params, moments, states and gradients. Threads exchange projections and slopes
// of the rows, and sums over them; whatever is not of a column, all of them compute, in the same order.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "adam_moves.hpp"
#include "course.hpp"

namespace tensormachines {

template <class T>
class PackedDescent {
    using Piece = typename SplineTables<T>::Piece;

public:
    PackedDescent(const AdamVectors<T>& vectors, const Layout& layout, const SplineTables<T>& spline,
                  const std::vector<const Block<T>*>& blocks, const LossChoice& loss, Team& team)
        : vectors_(vectors), layout_(layout), spline_(spline), blocks_(blocks), loss_(loss), team_(team),
          columns_(layout.columns()), padded_(padded_columns<T>(layout)),
          pieces_(spline.pieces()), stretches_(divide_splines(pieces_)) {
        std::int64_t most_rows = 1;  // of a piece of rows
        for (const Block<T>* block : blocks) {
            const PackedShares& packed = *job(*block).packed;
            for (std::int64_t p = 0; p < packed.pieces; ++p)
                most_rows = std::max(most_rows, packed.first_row[p + 1] - packed.first_row[p]);
            most_pieces_ = std::max(most_pieces_, packed.pieces);
        }
        const Job<T> first = job(*blocks[0]);
        const std::int64_t groups = (most_rows + GROUP - 1) / GROUP;
        z_ = allocate(groups * GROUP * projection_stride(first) * sizeof(T));
        parts_.assign(groups, Totals(first));
        const int threads = team.start();
        const std::int64_t of_line = 64 / std::int64_t(sizeof(T)), lines = (padded_ + of_line - 1) / of_line;
        for (int t = 0; t < threads; ++t) {
            const std::int64_t from = lines * t / threads * of_line, to = lines * (t + 1) / threads * of_line;
            shares_.emplace_back(*this, first, std::min(from, padded_), std::min(to, padded_));
        }
    }

    // Takes the steps; returns as the course says.
    Progress run(const Course<T>& course) {
        team_.run([&](int t) { run_thread(course, t); });
        Progress progress = shares_[0].progress;
        if (!progress.over && course.moves() && course.steps) finish(course, course.steps - 1, progress);
        for (Share& share : shares_) share.write_back(*this);
        std::copy_n(shares_[0].head.begin(), layout_.head(), vectors_.params);
        std::copy_n(shares_[0].head_mean.begin(), layout_.head(), vectors_.mean);
        std::copy_n(shares_[0].head_square.begin(), layout_.head(), vectors_.square);
        return progress;
    }

private:
    static constexpr std::int64_t GROUP = 32;          // rows
    static constexpr std::int64_t PIECES_AT_ONCE = 2;  // whose gradient is added up in type T
    static constexpr std::int64_t FEW_STATES = 512;    // of a column, whose totals are added up as a whole

    static T* numbers(const Memory& memory) { return static_cast<T*>(memory.get()); }

    // What a thread has: columns [from, from + columns) of the factors, in rows of `padded`.
    struct Share {
        std::int64_t from, columns, padded;
        Memory params, mean, square, strength, units, point, states, gradient, always, gathered, scratch;
        std::vector<double> totals;   // of the gradient of many pieces of rows
        std::vector<T> penalties;     // of a stretch
        std::vector<double> penalty;  // of a step, by column
        std::vector<T> head, head_mean, head_square, head_point, head_gradient;
        double largest = 0;
        AdamSums of_head{0, 0};
        Totals sums;
        Progress progress;

        Share(const PackedDescent& all, const Job<T>& job, std::int64_t begin, std::int64_t end)
            : from(begin), columns(std::max<std::int64_t>(0, std::min(end, all.columns_) - begin)),
              padded(end - begin), penalties(padded), penalty(padded), head_gradient(all.layout_.head()),
              sums(job) {
            const std::int64_t functions = all.spline_.functions(), head_size = all.layout_.head(),
                               in_states = all.spline_.states() * padded;
            std::int64_t most = 0;
            for (const SplineStretch& stretch : all.stretches_) most = std::max(most, stretch.functions);
            const AdamVectors<T>& v = all.vectors_;
            auto copied = [&](const T* vector, T otherwise) {
                Memory memory = allocate(functions * padded * sizeof(T));
                std::fill_n(numbers(memory), functions * padded, otherwise);
                for (std::int64_t f = 0; f < functions; ++f)
                    std::copy_n(vector + head_size + f * all.columns_ + from, columns,
                                numbers(memory) + f * padded);
                return memory;
            };
            params = copied(v.params, T(0));
            mean = copied(v.mean, T(0));
            square = copied(v.square, T(0));
            if (v.strength) strength = copied(v.strength, T(0));
            if (v.units) {
                units = copied(v.units, T(1));
                point = allocate(functions * padded * sizeof(T));
                for (std::int64_t i = 0; i < functions * padded; ++i)
                    numbers(point)[i] = numbers(params)[i] * numbers(units)[i];
            }
            states = allocate(in_states * sizeof(T));
            gradient = allocate(in_states * sizeof(T));
            std::fill_n(numbers(states), in_states, T(0));
            always = allocate(all.stretches_.size() * padded * sizeof(T));
            gathered = allocate(most * padded * sizeof(T));
            scratch = allocate(kernel<T>().scratch_bytes(job));
            if (all.most_pieces_ > PIECES_AT_ONCE) totals.resize(in_states);
            head.assign(v.params, v.params + head_size);
            head_mean.assign(v.mean, v.mean + head_size);
            head_square.assign(v.square, v.square + head_size);
            head_point = head;
            for (std::int64_t i = 0; v.units && i < head_size; ++i) head_point[i] *= v.units[i];
            for (std::size_t s = 0; s < all.stretches_.size(); ++s) spread(all, s);
            add_up_always(all);
        }

        const T* factors() const { return numbers(units ? point : params); }
        const T* biases() const { return units ? head_point.data() : head.data(); }

        void spread(const PackedDescent& all, std::size_t s) {
            const SplineStretch& stretch = all.stretches_[s];
            if (padded)
                all.spline_.spread(&all.pieces_[stretch.first],
                                   all.pieces_.data() + stretch.last, factors() + stretch.function * padded,
                                   padded, numbers(states), numbers(always) + s * padded);
        }

        void add_up_always(const PackedDescent& all) {
            tensormachines::add_up_always(numbers(always), std::int64_t(all.stretches_.size()), padded,
                                          numbers(states) + (all.spline_.states() - 1) * padded);
        }

        // Moves what pieces [from_piece, to_piece) of rows have added to the gradient to the totals: of a
        // column with very many states only those that these rows are in.
        void add_up(const PackedShares& packed, std::int64_t from_piece, std::int64_t to_piece) {
            T* const of_states = numbers(gradient);
            auto move = [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t k = begin * padded; k < end * padded; ++k) {
                    totals[k] += double(of_states[k]);
                    of_states[k] = 0;
                }
            };
            for (std::int64_t c = 0; c < packed.columns; ++c) {
                const std::int64_t first = packed.first_state[c], last = packed.first_state[c + 1];
                if (last - first <= FEW_STATES) {
                    move(first, last);
                    continue;
                }
                for (std::int64_t p = from_piece; p < to_piece; ++p) {
                    const std::int64_t place = p * packed.columns + c;
                    for (std::int64_t r = packed.first_run[place]; r < packed.first_run[place + 1]; ++r) {
                        const std::uint32_t run = packed.runs[r];
                        const std::int64_t state = first + std::int64_t(run >> 16);
                        move(state, state + (run & 0x8000 ? 2 : 1));
                    }
                }
            }
            const std::int64_t always = packed.first_state[packed.columns];
            move(always, always + 1);
        }

        // Steps along the gradient of the columns.
        void step(const PackedDescent& all, const AdamStep<T>& step) {
            std::fill(penalty.begin(), penalty.end(), 0.0);
            largest = 0;
            for (std::size_t s = 0; padded && s < all.stretches_.size(); ++s) {
                const SplineStretch& stretch = all.stretches_[s];
                all.spline_.gather(&all.pieces_[stretch.first], all.pieces_.data() + stretch.last,
                                   numbers(gradient), padded, numbers(gathered));
                std::fill(penalties.begin(), penalties.end(), T(0));
                const std::int64_t place = stretch.function * padded;
                auto at = [&](const Memory& memory) { return memory ? numbers(memory) + place : nullptr; };
                largest = larger(largest, kernel<T>().adam_rows(
                                              stretch.functions, padded,
                                              {at(params), at(mean), at(square), at(strength), at(units)},
                                              numbers(gathered), at(point), step, penalties.data()));
                for (std::int64_t k = 0; k < padded; ++k) penalty[k] += double(penalties[k]);
                spread(all, s);
            }
            add_up_always(all);
        }

        // Steps along the gradient of biases and weights, which is in the sums.
        void step_head(const PackedDescent& all, const AdamStep<T>& step) {
            std::copy(sums.head.begin(), sums.head.end(), head_gradient.begin());
            const AdamVectors<T> vectors{head.data(), head_mean.data(), head_square.data(),
                                         all.vectors_.strength, all.vectors_.units};
            of_head = move_head(vectors, all.layout_, head_gradient.data(), head_point.data(), step);
        }

        void write_back(const PackedDescent& all) const {
            const AdamVectors<T>& v = all.vectors_;
            const std::int64_t head_size = all.layout_.head();
            for (std::int64_t f = 0; f < all.spline_.functions(); ++f) {
                const std::int64_t to = head_size + f * all.columns_ + from;
                std::copy_n(numbers(params) + f * padded, columns, v.params + to);
                std::copy_n(numbers(mean) + f * padded, columns, v.mean + to);
                std::copy_n(numbers(square) + f * padded, columns, v.square + to);
            }
        }
    };

    // A job for the rows of a block: all projections, no factors.
    Job<T> job(const Block<T>& block, const T* head = nullptr) const {
        Job<T> job = block.job(loss_, layout_, 1, head);
        job.stride = padded_;
        return job;
    }

    // All that thread t does. Nothing in here allocates or throws.
    void run_thread(const Course<T>& course, int t) {
        Share& own = shares_[t];
        Progress& progress = own.progress;
        for (std::int64_t i = 0; i < course.steps; ++i) {
            const Block<T>& block = *blocks_[course.order[i]];
            evaluate(course, block, t, i);
            if (progress.over) return;
            progress.total += own.sums.value[0] / course.total_weight;
            if (course.fails(progress)) return progress.stop(i);
            if (!course.moves()) {
                progress.total += 0.5 * course.share(i) * course.penalty_at_rest;
                continue;
            }
            own.step_head(*this, course.step(i));
            own.step(*this, course.step(i));
        }
        progress.steps = course.steps;
    }

    // Evaluates a block, with its gradient if there is a step; stops if the step before turns out to have
    // failed.
    void evaluate(const Course<T>& course, const Block<T>& block, int t, std::int64_t i) {
        Share& own = shares_[t];
        const Job<T> whole = job(block, own.biases());
        Job<T> mine = whole;
        mine.projections = padded_;
        mine.stride = own.padded;
        mine.factors = numbers(own.states);
        const PackedShares& packed = *whole.packed;
        const std::int64_t in_states = spline_.states() * own.padded,
                           registers = own.padded / kernel<T>().lanes, z_stride = projection_stride(whole),
                           threads = team_.start();
        T *const z = numbers(z_), *const of_columns = z + own.from, *gradient = numbers(own.gradient);
        const bool total_needed = packed.pieces > PIECES_AT_ONCE;
        if (course.moves()) std::fill_n(gradient, in_states, T(0));
        for (std::int64_t p = 0; p < packed.pieces; ++p) {
            const std::int64_t start = packed.first_row[p], stop = packed.first_row[p + 1];
            kernel<T>().packed_forward(mine, p, 0, registers, of_columns);
            team_.wait();
            if (p == 0 && i > 0 && course.moves()) finish(course, i - 1, own.progress);
            if (own.progress.over) return;
            for (std::int64_t g = t; g < std::int64_t(parts_.size()); g += threads) {
                const std::int64_t begin = start + g * GROUP;
                if (p == 0) parts_[g].clear();
                if (begin < stop)
                    kernel<T>().packed_rows(whole, own.scratch.get(), begin, std::min(stop, begin + GROUP),
                                            z + g * GROUP * z_stride, parts_[g].sums());
            }
            team_.wait();
            if (!course.moves() || !own.padded) continue;
            kernel<T>().packed_backward(mine, p, 0, packed.columns, of_columns, gradient);
            if (total_needed && (p % PIECES_AT_ONCE == PIECES_AT_ONCE - 1 || p + 1 == packed.pieces))
                own.add_up(packed, p - p % PIECES_AT_ONCE, p + 1);
        }
        if (total_needed && course.moves() && own.padded)
            for (std::int64_t k = 0; k < in_states; ++k) {
                gradient[k] = T(own.totals[k]);
                own.totals[k] = 0;
            }
        own.sums.clear();
        for (const Totals& part : parts_) own.sums += part;
        for (double& entry : own.sums.head) entry /= course.total_weight;
    }

    // Adds what the threads found in step i, which all of them have taken.
    void finish(const Course<T>& course, std::int64_t i, Progress& progress) const {
        double penalty = shares_[0].of_head.penalty, largest = shares_[0].of_head.largest;
        for (const Share& share : shares_) {
            for (std::int64_t k = 0; k < share.columns; ++k) penalty += share.penalty[k];
            largest = larger(largest, share.largest);
        }
        progress.total += 0.5 * course.share(i) * penalty;
        progress.largest = largest;
        if (course.fails(progress)) progress.stop(i);
    }

    const AdamVectors<T> vectors_;
    const Layout layout_;
    const SplineTables<T>& spline_;
    const std::vector<const Block<T>*>& blocks_;
    const LossChoice loss_;
    Team& team_;
    const std::int64_t columns_, padded_;
    const std::vector<Piece> pieces_;
    const std::vector<SplineStretch> stretches_;
    std::int64_t most_pieces_ = 1;
    Memory z_;
    std::vector<Totals> parts_;  // of the groups of rows
    std::vector<Share> shares_;  // of the threads
};

}  // namespace tensormachines
