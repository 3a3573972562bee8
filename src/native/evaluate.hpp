// One evaluation, its rows shared among threads so that the result is the same, to the bit, for every number
// of them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "instructions.hpp"
#include "kernel.hpp"
#include "threads.hpp"

namespace tensormachines {

constexpr std::align_val_t LINE{64};
struct Free {
    void operator()(void* p) const { ::operator delete(p, LINE); }
};
using Memory = std::unique_ptr<void, Free>;
inline Memory allocate(std::size_t bytes) { return Memory(::operator new((bytes + 127) / 64 * 64, LINE)); }

struct Totals {
    std::vector<double> value, head;
    template <class T>
    explicit Totals(const Job<T>& job) : value(job.models), head(job.models * job.head_size) {}
    Sums sums() { return {value.data(), head.data()}; }
    void clear() {
        std::fill(value.begin(), value.end(), 0.0);
        std::fill(head.begin(), head.end(), 0.0);
    }
    void operator/=(double divisor) {
        for (double& entry : value) entry /= divisor;
        for (double& entry : head) entry /= divisor;
    }
    void operator+=(const Totals& other) {
        for (std::size_t i = 0; i < value.size(); ++i) value[i] += other.value[i];
        for (std::size_t i = 0; i < head.size(); ++i) head[i] += other.head[i];
    }
};

// More threads than this would not have enough rows.
inline int useful_threads(std::int64_t rows, int threads) {
    constexpr std::int64_t fewest = 128;  // of a thread
    return int(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(1, rows / fewest)));
}

// Rows are cut into chunks whose size depends on the data alone; partial sums are added in the order of the
// chunks.
constexpr std::int64_t LARGEST_CHUNK = 16384, FEWEST_CHUNKS = 8, SMALLEST_CHUNK = 512;

template <class T>
void run_dense(const Job<T>& job, Team& all, Totals& totals, T* gradient) {
    const std::int64_t chunk = std::clamp(job.rows / FEWEST_CHUNKS + 1, SMALLEST_CHUNK, LARGEST_CHUNK);
    const std::int64_t chunks = (job.rows + chunk - 1) / chunk;
    Team alone(1), &team = chunks > 1 ? all : alone;
    const int threads = team.start();
    const bool with_gradient = job.want == Want::gradient;
    const Memory packed = allocate(kernel<T>().packed_bytes(job));
    kernel<T>().pack(job, packed.get());
    std::vector<double> total(with_gradient ? job.factor_columns * job.width : 0);
    std::vector<Memory> scratch;
    for (int t = 0; t < threads; ++t) scratch.push_back(allocate(kernel<T>().scratch_bytes(job)));
    std::vector<Totals> parts(threads, Totals(job));
    std::atomic<std::int64_t> claimed{0};
    Turn turn;
    // Nothing in here allocates or throws: a thread that ended would keep the others waiting.
    team.run([&](int t) {
        Totals& part = parts[t];
        for (std::int64_t c; (c = claimed++) < chunks;) {
            part.clear();
            kernel<T>().dense(job, packed.get(), scratch[t].get(), c * chunk,
                              std::min(job.rows, (c + 1) * chunk), part.sums());
            if (!with_gradient) continue;
            turn.wait_for(c);
            totals += part;
            kernel<T>().add_gradient(job, scratch[t].get(), total.data());
            turn.pass();
        }
    });
    if (with_gradient)
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < job.factor_columns; ++k)
                gradient[j * job.factor_columns + k] = T(total[k * job.width + j]);
}

constexpr std::int64_t SAMPLED_ENTRIES = 4096, OFTEN = 4;  // times that a column is in the sample
constexpr std::int64_t SMALL_GRADIENT = 1 << 13;           // entries

// Columns of a sample of the entries, in order. They are not equally far apart: where every row has as many
// entries, these could all be the first of their rows.
template <class T>
std::vector<std::int64_t> sample_columns(const Job<T>& job) {
    std::vector<std::int64_t> sample;
    const std::int64_t entries = job.indptr32 ? job.indptr32[job.rows] : job.indptr64[job.rows];
    for (std::int64_t i = 0; i < std::min(entries, SAMPLED_ENTRIES); ++i) {
        const double golden = double(i) * 0.6180339887498949;
        const std::int64_t e =
            entries <= SAMPLED_ENTRIES ? i : std::int64_t((golden - std::floor(golden)) * double(entries));
        sample.push_back(job.indices32 ? job.indices32[e] : job.indices64[e]);
    }
    std::sort(sample.begin(), sample.end());
    return sample;
}

template <class T>
std::vector<std::int64_t> all_columns(const Job<T>& job) {
    std::vector<std::int64_t> columns(job.width);
    for (std::int64_t j = 0; j < job.width; ++j) columns[j] = j;
    return columns;
}

// Where the columns of each thread begin, and the last ones end. Results do not depend on that.
using Borders = std::vector<std::int64_t>;

// Column borders that give every thread about as many entries.
inline Borders column_borders(const std::vector<std::int64_t>& sample, std::int64_t width, int threads) {
    Borders borders{0};
    for (int t = 1; t < threads; ++t)
        borders.push_back(sample.empty() ? width : sample[sample.size() * t / threads]);
    borders.push_back(width);
    return borders;
}

// Columns whose gradient is moved into a float64 total after every block: all of them if that is cheap, else
// those that many rows have. The others add up few numbers, for which float32 is enough; so nothing as
// large as the gradient is needed in addition to it.
template <class T>
std::vector<std::int64_t> totalled_columns(const Job<T>& job, const std::vector<std::int64_t>& sample,
                                           bool small) {
    if (sizeof(T) == 8 || job.want != Want::gradient) return {};
    if (small) return all_columns(job);
    std::vector<std::int64_t> columns;
    for (std::size_t i = 0, next; i < sample.size(); i = next) {
        for (next = i; next < sample.size() && sample[next] == sample[i]; ++next) {
        }
        if (std::int64_t(next - i) >= OFTEN) columns.push_back(sample[i]);
    }
    return columns;
}

// Where the entries of each row pass the borders: (borders, rows), counted from the first entry of the row.
// Nothing if the entries of a row are not in order.
using Splits = std::vector<std::int32_t>;

template <class T>
Splits split_rows(const Job<T>& job, const Borders& borders) {
    Splits splits(borders.size() * job.rows);
    auto column = [&](std::int64_t e) -> std::int64_t {
        return job.indices32 ? job.indices32[e] : job.indices64[e];
    };
    for (std::int64_t row = 0; row < job.rows; ++row) {
        const std::int64_t begin = job.indptr32 ? job.indptr32[row] : job.indptr64[row],
                           end = job.indptr32 ? job.indptr32[row + 1] : job.indptr64[row + 1];
        for (std::int64_t e = begin + 1; e < end; ++e)
            if (column(e) < column(e - 1)) return {};
        std::int64_t e = begin;
        for (std::size_t t = 0; t < borders.size(); ++t) {
            while (e < end && column(e) < borders[t]) ++e;
            splits[t * job.rows + row] = std::int32_t(e - begin);
        }
    }
    return splits;
}

// What evaluations that follow each other can share.
struct Room {
    Borders borders;                 // for as many threads as there are, or others are found
    const Splits* splits = nullptr;  // of the next job by these borders, if they are known
    Memory slopes;
    std::vector<Memory> scratch;  // of the threads
    std::size_t slope_bytes = 0, scratch_bytes = 0;

    void reserve(std::size_t of_slopes, std::size_t of_scratch, int threads) {
        if (of_slopes > slope_bytes || !slopes) slopes = allocate(slope_bytes = of_slopes);
        if (of_scratch > scratch_bytes) scratch.clear();
        scratch_bytes = std::max(scratch_bytes, of_scratch);
        while (int(scratch.size()) < threads) scratch.push_back(allocate(scratch_bytes));
    }
};

// Rows that are handled in two halves, a block at a time: threads share its pieces of rows for the slopes,
// then its columns for the gradient. The gradient of a column is thus always added up by one thread, in the
// order of the rows, straight into its place.
struct Halves {
    std::int64_t block, piece;  // rows
    std::int64_t slopes;        // numbers that the first half leaves for a block, at most
    std::size_t scratch_bytes;  // of a thread
    bool sparse;                // whether most rows lack most columns
};

// The two halves are called as
//     first_half(scratch, number of the piece in its block, begin, end, first row of the block,
//                slopes of the block, sums)
//     second_half(begin, end, number of the thread, first column, last column, slopes of the block)
template <class T, class First, class Second>
void run_halves(const Job<T>& job, const Halves& halves, Team& all, Totals& totals, T* gradient,
                First first_half, Second second_half, Room& room) {
    const std::int64_t columns = job.stride, blocks = (job.rows + halves.block - 1) / halves.block,
                       pieces = (std::min(halves.block, job.rows) + halves.piece - 1) / halves.piece;
    Team alone(1), &team = pieces > 1 ? all : alone;
    const int threads = team.start();
    const bool with_gradient = job.want == Want::gradient;
    room.reserve(with_gradient ? halves.slopes * sizeof(T) : 0, halves.scratch_bytes, threads);
    std::vector<Totals> part(pieces, Totals(job));
    const bool small = !halves.sparse || job.width * job.factor_columns <= SMALL_GRADIENT;
    const bool one_block = blocks <= 1;  // whose sums need no total
    const bool few_borders = threads > 1 && int(room.borders.size()) != threads + 1;
    std::vector<std::int64_t> sample, totalled;
    if (few_borders || !one_block)
        sample = halves.sparse && (few_borders || !small) ? sample_columns(job) : all_columns(job);
    if (!one_block) totalled = totalled_columns(job, sample, small);
    std::vector<double> total(totalled.size() * columns);
    const Borders borders =
        few_borders || threads == 1 ? column_borders(sample, job.width, threads) : room.borders;
    std::atomic<std::int64_t> claimed{0};

    team.run([&](int t) {
        const std::int64_t first = borders[t], last = borders[t + 1];
        T* const of_block = static_cast<T*>(room.slopes.get());
        if (with_gradient) std::memset(gradient + first * columns, 0, (last - first) * columns * sizeof(T));
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::int64_t start = b * halves.block, stop = std::min(job.rows, start + halves.block);
            // Every block uses up `pieces` numbers, and one more for each thread that finds no piece left.
            const std::int64_t before = b * (pieces + threads);
            for (std::int64_t p; (p = claimed++ - before) < pieces;) {
                const std::int64_t row = start + p * halves.piece, end = std::min(stop, row + halves.piece);
                if (row >= stop) continue;
                // A single thread has both halves of a piece follow each other, while its slopes are in the
                // nearest cache.
                first_half(room.scratch[t].get(), p, row, end, threads == 1 ? row : start, of_block,
                           part[p].sums());
                if (with_gradient && threads == 1) second_half(row, end, t, first, last, of_block);
            }
            if (with_gradient || b + 1 < blocks) team.wait();
            if (!with_gradient) continue;
            if (threads > 1) second_half(start, stop, t, first, last, of_block);
            for (std::size_t h = 0; h < totalled.size(); ++h)
                if (totalled[h] >= first && totalled[h] < last)
                    for (std::int64_t k = 0; k < columns; ++k) {
                        total[h * columns + k] += double(gradient[totalled[h] * columns + k]);
                        gradient[totalled[h] * columns + k] = T(0);
                    }
            if (b + 1 < blocks) team.wait();
        }
    });
    for (std::int64_t p = 0; p < pieces; ++p) totals += part[p];
    for (std::size_t h = 0; h < totalled.size(); ++h)
        for (std::int64_t k = 0; k < columns; ++k)
            gradient[totalled[h] * columns + k] = T(total[h * columns + k]);
}

// Columns in which an all-zero row is not 0.
template <class T>
std::vector<std::int64_t> filled_columns(const Job<T>& job) {
    std::vector<std::int64_t> filled;
    for (std::int64_t j = 0; job.zero_row && j < job.width; ++j)
        if (job.zero_row[j] != T(0)) filled.push_back(j);
    return filled;
}

// A Tensor Machine on CSR rows. What zero_row adds to projections and gradient is the same for all rows, and
// added separately.
template <class T>
void run_sparse(const Job<T>& job, Team& team, Totals& totals, T* gradient, Room& room) {
    constexpr std::int64_t block = 2048, piece = 64;
    const std::int64_t columns = job.factor_columns, stride = job.stride;
    std::vector<double> wide_offset(columns), base(columns);
    // A single thread, and a job that is left to one, has no use for them.
    const bool split = room.splits && !room.splits->empty() && job.rows > piece &&
                       room.borders.size() == std::size_t(team.start()) + 1;
    const Splits* splits = split ? room.splits : nullptr;
    const std::vector<std::int64_t> filled = filled_columns(job);
    for (const std::int64_t j : filled)
        for (std::int64_t k = 0; k < columns; ++k)
            wide_offset[k] += double(job.zero_row[j]) * double(job.factors[j * stride + k]);
    const std::vector<T> offset(wide_offset.begin(), wide_offset.end());
    std::vector<double> base_parts(job.zero_row || job.basis.unit_rows ? block / piece * columns : 0);
    run_halves(
        job, {block, piece, std::min(block, job.rows) * stride, kernel<T>().scratch_bytes(job), true}, team,
        totals, gradient,
        [&](void* scratch, std::int64_t p, std::int64_t begin, std::int64_t end, std::int64_t start,
            T* slopes, Sums sums) {
            kernel<T>().sparse_rows(job, offset.data(), scratch, begin, end,
                                    slopes + (begin - start) * stride, base_parts.data() + p * columns, sums);
        },
        [&](std::int64_t begin, std::int64_t end, int t, std::int64_t first, std::int64_t last,
            const T* slopes) {
            const std::int32_t* starts = splits ? splits->data() + t * job.rows : nullptr;
            kernel<T>().sparse_columns(job, begin, end, first, last, starts,
                                       splits ? starts + job.rows : nullptr, slopes, gradient);
        },
        room);
    if (job.want != Want::gradient || !job.zero_row) return;
    for (std::int64_t p = 0; p < block / piece; ++p)
        for (std::int64_t k = 0; k < columns; ++k) base[k] += base_parts[p * columns + k];
    for (const std::int64_t j : filled)
        for (std::int64_t k = 0; k < columns; ++k)
            gradient[j * stride + k] =
                T(double(gradient[j * stride + k]) + double(job.zero_row[j]) * base[k]);
}

// Columns of X [first, last) of each thread, with about as many entries.
inline Borders entry_borders(const PackedShares& packed, int threads) {
    Borders borders{0};
    const std::int64_t all = packed.first_entry[packed.columns];
    for (std::int64_t c = 0; c < packed.columns && int(borders.size()) < threads; ++c)
        if (packed.first_entry[c + 1] * threads >= all * std::int64_t(borders.size()))
            borders.push_back(c + 1);
    borders.resize(threads + 1, packed.columns);
    return borders;
}

// A Tensor Machine on packed rows, a piece at a time.
template <class T>
void run_packed(const Job<T>& job, Team& all, Totals& totals, T* gradient, Room& room) {
    constexpr std::int64_t group = 32, at_once = 2;  // rows; pieces whose gradient is added up in type T
    const PackedShares& packed = *job.packed;
    std::int64_t most = 1;  // rows of a piece
    for (std::int64_t p = 0; p < packed.pieces; ++p)
        most = std::max(most, packed.first_row[p + 1] - packed.first_row[p]);
    Team alone(1), &team = most > group ? all : alone;
    const int threads = team.start();
    const bool with_gradient = job.want == Want::gradient, total_needed = packed.pieces > at_once;
    const std::int64_t groups = (most + group - 1) / group, stride = job.stride, lanes = kernel<T>().lanes,
                       registers = stride / lanes,
                       of_line = std::max<std::int64_t>(1, 64 / (lanes * std::int64_t(sizeof(T))));
    const std::int64_t z_stride = projection_stride(job), lines = (registers + of_line - 1) / of_line;
    room.reserve(std::size_t(groups * group * z_stride) * sizeof(T), kernel<T>().scratch_bytes(job), threads);
    std::vector<Totals> parts(groups, Totals(job));
    std::vector<double> total(with_gradient && total_needed ? job.width * stride : 0);
    const Borders borders = entry_borders(packed, threads);
    T* const z = static_cast<T*>(room.slopes.get());

    team.run([&](int t) {
        const std::int64_t first = borders[t], last = borders[t + 1];
        const bool with_last = first < last && last == packed.columns;  // and the state that every row is in
        const std::int64_t begin = packed.first_state[first] * stride,
                           end = (with_last ? job.width : packed.first_state[last]) * stride;
        const std::int64_t from = std::min(registers, lines * t / threads * of_line),
                           to = std::min(registers, lines * (t + 1) / threads * of_line);
        if (with_gradient) std::fill(gradient + begin, gradient + end, T(0));
        for (std::int64_t p = 0; p < packed.pieces; ++p) {
            const std::int64_t start = packed.first_row[p], stop = packed.first_row[p + 1];
            kernel<T>().packed_forward(job, p, from, to, z);
            team.wait();
            for (std::int64_t g = t; start + g * group < stop; g += threads)
                kernel<T>().packed_rows(job, room.scratch[t].get(), start + g * group,
                                        std::min(stop, start + (g + 1) * group), z + g * group * z_stride,
                                        parts[g].sums());
            if (with_gradient || p + 1 < packed.pieces) team.wait();
            if (with_gradient) {
                kernel<T>().packed_backward(job, p, first, last, z, gradient);
                if (total_needed && (p % at_once == at_once - 1 || p + 1 == packed.pieces))
                    for (std::int64_t i = begin; i < end; ++i) {
                        total[i] += double(gradient[i]);
                        gradient[i] = p + 1 < packed.pieces ? T(0) : T(total[i]);
                    }
            }
            if (p + 1 < packed.pieces) team.wait();
        }
    });
    for (const Totals& part : parts) totals += part;
}

// A factorization machine, dense or CSR. The gradient has no common slope for the entries of a row, so every
// entry leaves its own.
template <class T>
void run_anova(Job<T> job, Team& team, Totals& totals, T* gradient, Room& room) {
    constexpr std::int64_t smallest_piece = 16, largest_piece = 256, fewest_pieces = 8,
                           largest_block = 2048;                              // rows; in a block
    constexpr std::int64_t piece_numbers = 1 << 13, block_numbers = 1 << 18;  // in a near and a far cache
    const bool sparse = !job.filled;
    const std::int64_t stride = kernel<T>().anova_stride(job);
    // Loads of a whole register may reach past the factors of a column: into those of the next ones, or into
    // this padding.
    constexpr std::int64_t past = 64 / std::int64_t(sizeof(T));
    job.last_columns =
        std::max<std::int64_t>(0, job.width - (past + job.factor_columns - 1) / job.factor_columns);
    const std::int64_t before = job.last_columns * job.factor_columns,
                       behind = job.width * job.factor_columns - before;
    std::vector<T> last_factors(behind + past);
    std::copy_n(job.factors + before, behind, last_factors.begin());
    job.last_factors = last_factors.data();

    const std::int64_t rows = std::max<std::int64_t>(1, job.rows);
    const std::int64_t in_row = stride * std::max<std::int64_t>(1, entries_before(job, job.rows) / rows);
    const std::int64_t piece =
        std::clamp(piece_numbers / in_row / smallest_piece * smallest_piece, smallest_piece, largest_piece);
    const std::int64_t block = piece * std::clamp(block_numbers / (in_row * piece), fewest_pieces,
                                                  std::max(fewest_pieces, largest_block / piece));
    job.most_entries = job.filled ? job.width : 0;
    for (std::int64_t row = 0, begin = 0, end; !job.filled && row < job.rows; ++row, begin = end) {
        end = entries_before(job, row + 1);
        job.most_entries = std::max(job.most_entries, end - begin);
    }
    std::int64_t most = 0;  // in a block
    for (std::int64_t row = 0; row < job.rows; row += block)
        most =
            std::max(most, entries_before(job, std::min(job.rows, row + block)) - entries_before(job, row));
    run_halves(
        job, {block, piece, most * stride, kernel<T>().anova_scratch_bytes(job), sparse}, team, totals,
        gradient,
        [&](void* scratch, std::int64_t, std::int64_t begin, std::int64_t end, std::int64_t start, T* slopes,
            Sums sums) {
            kernel<T>().anova_rows(
                job, scratch, begin, end,
                slopes + (entries_before(job, begin) - entries_before(job, start)) * stride, sums);
        },
        [&](std::int64_t begin, std::int64_t end, int, std::int64_t first, std::int64_t last,
            const T* slopes) { kernel<T>().anova_columns(job, begin, end, first, last, slopes, gradient); },
        room);
}

// Computes what the job wants: `totals` and the gradient of the factors, or `job.result`.
template <class T>
void evaluate(const Job<T>& job, Team& team, Totals& totals, T* gradient, Room& room) {
    if (job.model == Model::anova)
        run_anova(job, team, totals, gradient, room);
    else if (job.packed)
        run_packed(job, team, totals, gradient, room);
    else if (job.indptr32 || job.indptr64)
        run_sparse(job, team, totals, gradient, room);
    else
        run_dense(job, team, totals, gradient);
}

// Compiled once, in evaluate.cpp, and not in every file that calls it.
extern template void evaluate<float>(const Job<float>&, Team&, Totals&, float*, Room&);
extern template void evaluate<double>(const Job<double>&, Team&, Totals&, double*, Room&);

}  // namespace tensormachines
