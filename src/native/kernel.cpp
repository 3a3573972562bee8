// Value and gradient of a Tensor Machine in one pass over the rows. This file is compiled once for each instruction set; VARIANT names
// the copy and VECTOR_BYTES gives the register width.
//
// Rows are handled in strips of LANES: a strip stores each of its columns as one register, so that products, losses and slopes are
// plain arithmetic on whole registers. Dense X comes in two ways:
//   narrow  X itself is turned into strips; both matrix products run over rows, with no padding however few the columns;
//   wide    X stays as it is; the projections are computed a register of factors at a time and then turned into strips.
#include "kernel.hpp"

#include <cmath>
#include <cstring>
#include <utility>

namespace tensormachines {
namespace {

template <class T>
struct Register {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class T>
using Vec = typename Register<T>::type;
template <class T>
constexpr int LANES = VECTOR_BYTES / int(sizeof(T));

// Accumulators that stay in registers: 24 of 32, or 12 of 16.
constexpr bool MANY_REGISTERS = VECTOR_BYTES == 64 || VECTOR_BYTES == 16;
constexpr int FORWARD_FACTORS = MANY_REGISTERS ? 8 : 4, FORWARD_STRIPS = 3;
constexpr int BACKWARD_FACTORS = 4, BACKWARD_COLUMNS = MANY_REGISTERS ? 6 : 3;
constexpr std::int64_t NARROW_LIMIT = 128;          // columns from which on X is used as it is
constexpr std::int64_t BLOCK_BYTES = 192 * 1024;    // of X and projections at a time
constexpr int WIDE_ROWS = MANY_REGISTERS ? 8 : 4, WIDE_REGISTERS = 3;

template <class T>
inline Vec<T> splat(T x) {
    return x - Vec<T>{};
}
template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
    std::memcpy(p, &v, sizeof v);
}
// Both keep a first argument that is NaN, so that an overflow is seen and not hidden.
template <class V>
inline V largest(V a, V b) {
    return a < b ? b : a;
}
template <class V>
inline V smallest(V a, V b) {
    return a > b ? b : a;
}
template <class T>
inline double sum(Vec<T> v) {
    constexpr int n = LANES<T>;
    double lanes[n];
    for (int i = 0; i < n; ++i) lanes[i] = double(v[i]);
#pragma GCC unroll 4
    for (int step = n / 2; step > 0; step /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < step; ++i) lanes[i] += lanes[i + step];
    return lanes[0];
}

// `count` elements `stride` apart, zeros behind them; and ones instead of elements.
template <class T>
inline Vec<T> load_lanes(const T* p, std::int64_t stride, int count) {
    if (count == LANES<T> && stride == 1) return load(p);
    T lanes[LANES<T>] = {};
    for (int i = 0; i < count; ++i) lanes[i] = p[i * stride];
    return load(lanes);
}
template <class T>
inline Vec<T> count_lanes(int count) {
    if (count == LANES<T>) return splat<T>(1);
    T lanes[LANES<T>] = {};
    for (int i = 0; i < count; ++i) lanes[i] = T(1);
    return load(lanes);
}

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
inline std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t at_least(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// ---------------------------------------------------------------------------------------------------------------- transposition

template <int bytes>
struct Index;
template <>
struct Index<4> {
    typedef std::int32_t type __attribute__((vector_size(VECTOR_BYTES)));
};
template <>
struct Index<8> {
    typedef std::int64_t type __attribute__((vector_size(VECTOR_BYTES)));
};
#if defined(__clang__)
#define SHUFFLE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(T, a, b, ...) __builtin_shuffle(a, b, typename Index<sizeof(T)>::type{__VA_ARGS__})
#endif

// Exchanges, between two registers `distance` apart, the lanes that the transpose moves across that bit of the row number.
template <class T, int distance, int... lane>
inline void exchange(Vec<T>& low, Vec<T>& high, std::integer_sequence<int, lane...>) {
    constexpr int n = LANES<T>;
    const Vec<T> first = SHUFFLE(T, low, high, ((lane & distance) ? n + lane - distance : lane)...);
    const Vec<T> second = SHUFFLE(T, low, high, ((lane & distance) ? n + lane : lane + distance)...);
    low = first;
    high = second;
}
template <class T, int distance>
inline void transpose_stages(Vec<T> (&r)[LANES<T>]) {
    if constexpr (distance > 0) {
#pragma GCC unroll 16
        for (int i = 0; i < LANES<T>; ++i)
            if (!(i & distance)) exchange<T, distance>(r[i], r[i + distance], std::make_integer_sequence<int, LANES<T>>{});
        transpose_stages<T, distance / 2>(r);
    }
}
template <class T>
inline void transpose(Vec<T> (&r)[LANES<T>]) {
    transpose_stages<T, LANES<T> / 2>(r);
}

// Rows (LANES of them, `stride` apart, `columns` wide) to a strip, and back. Where the width is no multiple of LANES the last square
// overlaps the one before it; below LANES there is no room for that and elements move one by one.
template <class T>
void rows_to_strip(const T* rows, std::int64_t stride, std::int64_t columns, Vec<T>* strip) {
    constexpr int n = LANES<T>;
    if (columns < n) {
        for (std::int64_t j = 0; j < columns; ++j)
            for (int i = 0; i < n; ++i) strip[j][i] = rows[i * stride + j];
        return;
    }
    for (std::int64_t done = 0; done < columns; done += n) {
        const std::int64_t j = at_most(done, columns - n);
        Vec<T> square[n];
        for (int i = 0; i < n; ++i) square[i] = load(rows + i * stride + j);
        transpose<T>(square);
        for (int i = 0; i < n; ++i) strip[j + i] = square[i];
    }
}
template <class T>
void strip_to_rows(const Vec<T>* strip, std::int64_t stride, std::int64_t columns, int count, T* rows) {
    constexpr int n = LANES<T>;
    if (columns < n) {
        for (int i = 0; i < count; ++i)
            for (std::int64_t j = 0; j < columns; ++j) rows[i * stride + j] = strip[j][i];
        return;
    }
    for (std::int64_t done = 0; done < columns; done += n) {
        const std::int64_t j = at_most(done, columns - n);
        Vec<T> square[n];
        for (int i = 0; i < n; ++i) square[i] = strip[j + i];
        transpose<T>(square);
        for (int i = 0; i < count; ++i) store(rows + i * stride + j, square[i]);
    }
}

// ---------------------------------------------------------------------------------------------------------------------- losses

constexpr double INVERSE_FACTORIAL[] = {1.0,           1.0,            1.0 / 2,         1.0 / 6,         1.0 / 24,
                                        1.0 / 120,     1.0 / 720,      1.0 / 5040,      1.0 / 40320,     1.0 / 362880,
                                        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// exp(x) for x <= 0, to rounding; what would be denormal may become 0.
template <class T>
inline Vec<T> exp_negative(Vec<T> x) {
    constexpr bool single = sizeof(T) == 4;
    typedef typename Index<sizeof(T)>::type Whole;
    const Vec<T> least = splat<T>(single ? T(-87) : T(-708));
    const auto vanishes = x < least;
    x = largest(x, least);
    const T log2e = T(1.4426950408889634074), magic = single ? T(12582912) : T(6755399441055744);  // 1.5 * 2^mantissa: rounds to integer
    const Vec<T> shifted = x * log2e + magic;
    const Vec<T> n = shifted - magic;
    const T high = single ? T(0.693359375) : T(6.93147180369123816490e-01);
    const T low = single ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
    const Vec<T> r = (x - n * high) - n * low;
    constexpr int terms = single ? 7 : 13;
    Vec<T> series{};
#pragma GCC unroll 16
    for (int k = terms; k >= 0; --k) series = series * r + T(INVERSE_FACTORIAL[k]);
    Whole bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << (single ? 23 : 52));
    Whole result;
    std::memcpy(&result, &series, sizeof result);
    result += bits;  // adds n to the exponent
    Vec<T> value;
    std::memcpy(&value, &result, sizeof value);
    return vanishes ? Vec<T>{} : value;
}

// log(1 + u) for 0 <= u <= 1, as 2 atanh(u / (2 + u)).
template <class T>
inline Vec<T> log_one_plus(Vec<T> u) {
    const Vec<T> t = u / (u + T(2)), t2 = t * t;
    constexpr int terms = sizeof(T) == 4 ? 8 : 17;
    Vec<T> series{};
#pragma GCC unroll 20
    for (int k = terms; k >= 1; --k) series = series * t2 + T(1) / T(2 * k - 1);
    return (t + t) * series;
}

// Loss of one strip: f (outputs) holds the outputs on entry and the weighted slopes dloss/df on return.
template <class T>
inline Vec<T> squared_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs) {
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> difference = f[o] - y[o];
        total += difference * difference * weight;
        f[o] = difference * weight;
    }
    return total * T(0.5);
}
template <class T>
inline Vec<T> logistic_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight) {
    // The margin m is z or -z, whichever should be positive; loss = log(1 + exp(-m)), slope = -+ 1 / (1 + exp(m)).
    const Vec<T> zero{}, one = splat<T>(1);
    const auto positive = y[0] > zero;
    const Vec<T> margin = positive ? f[0] : -f[0];
    const Vec<T> small = exp_negative<T>(margin < zero ? margin : -margin);  // exp(-|m|)
    const Vec<T> loss = largest(-margin, zero) + log_one_plus<T>(small);
    const Vec<T> slope = weight * (margin < zero ? one : small) / (one + small);
    f[0] = positive ? -slope : slope;
    return loss * weight;
}
template <class T>
inline Vec<T> multinomial_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs) {
    Vec<T> top = f[0], total{}, own{};
    for (int o = 1; o < outputs; ++o) top = largest(top, f[o]);
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> above = f[o] - top;
        own = y[0] == splat<T>(T(o)) ? above : own;
        f[o] = exp_negative<T>(above);
        total += f[o];
    }
    const Vec<T> share = weight / total;
    for (int o = 0; o < outputs; ++o) f[o] = f[o] * share - (y[0] == splat<T>(T(o)) ? weight : Vec<T>{});
    Vec<T> loss;
    for (int i = 0; i < LANES<T>; ++i) loss[i] = std::log(total[i]);
    return (loss - own) * weight;
}

// ----------------------------------------------------------------------------------------------- from projections to slopes

// slope * product of the other factors, in place, for one term whose factors are `step` registers apart: prefix times suffix, because
// a projection may be exactly zero.
template <class T, int P>
inline void leave_one_out(Vec<T>* z, std::int64_t step, Vec<T> slope) {
    Vec<T> factor[P], prefix = slope, suffix = splat<T>(1);
#pragma GCC unroll 8
    for (int j = 0; j < P; ++j) factor[j] = z[j * step];
    Vec<T> before[P];
#pragma GCC unroll 8
    for (int j = 0; j < P; ++j) {
        before[j] = prefix;
        prefix *= factor[j];
    }
#pragma GCC unroll 8
    for (int j = P - 1; j >= 0; --j) {
        z[j * step] = before[j] * suffix;
        suffix *= factor[j];
    }
}
template <class T>
inline void leave_one_out_any(Vec<T>* z, std::int64_t step, int p, Vec<T> slope, Vec<T>* before) {
    for (int j = 0; j < p; ++j) {
        before[j] = slope;
        slope *= z[j * step];
    }
    Vec<T> suffix = splat<T>(1);
    for (int j = p - 1; j >= 0; --j) {
        const Vec<T> own = z[j * step];
        z[j * step] = before[j] * suffix;
        suffix *= own;
    }
}
template <class T>
void output_slopes(const Job<T>& job, Vec<T>* z, Vec<T> slope, Vec<T>* before) {
    *z++ = slope;
    for (int p = 2; p <= job.degree; z += p * job.rank, ++p)
        for (int i = 0; i < job.rank; ++i) switch (p) {
                case 2: leave_one_out<T, 2>(z + i, job.rank, slope); break;
                case 3: leave_one_out<T, 3>(z + i, job.rank, slope); break;
                case 4: leave_one_out<T, 4>(z + i, job.rank, slope); break;
                case 5: leave_one_out<T, 5>(z + i, job.rank, slope); break;
                case 6: leave_one_out<T, 6>(z + i, job.rank, slope); break;
                default: leave_one_out_any<T>(z + i, job.rank, p, slope, before);
            }
}
template <class T>
inline Vec<T> output(const Job<T>& job, const Vec<T>* z, Vec<T> f, Vec<T>* terms) {
    f += *z++;
    for (int p = 2; p <= job.degree; z += p * job.rank, ++p)
        for (int i = 0; i < job.rank; ++i) {
            Vec<T> product = z[i];
            for (int j = 1; j < p; ++j) product *= z[j * job.rank + i];
            if (terms) *terms++ = product;
            f += product;
        }
    return f;
}

template <class T>
std::int64_t term_count(const Job<T>& job) {
    return std::int64_t(job.degree - 1) * job.rank;
}

// What the strips of a block need besides their projections; part of a thread's scratch.
template <class T>
struct Link {
    Vec<T>* f;       // (strips, models * outputs): outputs, then slopes
    Vec<T>* y;       // (outputs)
    Vec<T>* before;  // (degree)
    Vec<T>* terms;   // (models * outputs * terms), only when these are wanted
};

// Outputs of a block of strips, f = bias + everything; z is (strips, factor_columns).
template <class T>
void block_outputs(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end, const Vec<T>* z) {
    constexpr int n = LANES<T>;
    const int heads = job.models * job.outputs;
    const std::int64_t terms = term_count(job);
    Vec<T>* f = link.f;
    for (; row < end; row += n, z += job.factor_columns, f += heads) {
        for (int h = 0; h < heads; ++h)
            f[h] = output<T>(job, z + h * job.projections, splat<T>(job.bias[h]), job.want == Want::terms ? link.terms + h * terms : nullptr);
        const int count = int(at_most(n, end - row));
        if (job.want == Want::outputs) strip_to_rows<T>(f, heads, heads, count, job.result + row * heads);
        if (job.want == Want::terms) strip_to_rows<T>(link.terms, heads * terms, heads * terms, count, job.result + row * heads * terms);
    }
}

// Losses of a block of strips; f turns from outputs into slopes.
template <class T>
void block_losses(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end, const Sums& sums) {
    constexpr int n = LANES<T>;
    const int targets = job.loss == Loss::squared ? job.outputs : 1;
    Vec<T>* f = link.f;
    for (; row < end; row += n) {
        const int count = int(at_most(n, end - row));
        const Vec<T> weight = job.weight ? load_lanes(job.weight + row, 1, count) : count_lanes<T>(count);
        for (int t = 0; t < targets; ++t) link.y[t] = load_lanes(job.y + row * targets + t, targets, count);
        for (int m = 0; m < job.models; ++m, f += job.outputs) {
            Vec<T> loss;
            if (job.loss == Loss::squared)
                loss = squared_loss<T>(f, link.y, weight, job.outputs);
            else if (job.loss == Loss::logistic)
                loss = logistic_loss<T>(f, link.y, weight);
            else
                loss = multinomial_loss<T>(f, link.y, weight, job.outputs);
            sums.value[m] += sum<T>(loss);
            for (int o = 0; o < job.outputs; ++o) sums.bias[m * job.outputs + o] += sum<T>(f[o]);
        }
    }
}

// Projections z of rows [row, end) to results, or to losses and slopes, the latter in place of z.
template <class T>
void link_block(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end, Vec<T>* z, const Sums& sums) {
    block_outputs<T>(job, link, row, end, z);
    if (job.want != Want::gradient) return;
    block_losses<T>(job, link, row, end, sums);
    const std::int64_t strips = (end - row + LANES<T> - 1) / LANES<T>, heads = job.models * job.outputs;
    for (std::int64_t i = 0; i < strips * heads; ++i) output_slopes<T>(job, z + i * job.projections, link.f[i], link.before);
}

// ------------------------------------------------------------------------------------------------------------------ dense X

template <class T>
struct Plan {
    bool wide, direct;              // direct: wide, and the rows of X are used where they are
    std::int64_t block, strips;     // rows and strips of a block
    std::int64_t padded;            // factor columns rounded up to whole registers

    explicit Plan(const Job<T>& job) {
        constexpr int n = LANES<T>;
        wide = job.width >= NARROW_LIMIT;
        direct = !job.basis.shift && !job.basis.unit_rows && !(job.basis.constant != 0) && job.column_stride == 1;
        padded = round_up(job.factor_columns, n);
        const std::int64_t bytes = BLOCK_BYTES;
        strips = bytes / (std::int64_t(sizeof(T)) * n * (job.width + job.factor_columns));
        strips = round_up(at_least(1, at_most(strips, 32)), FORWARD_STRIPS);
        block = strips * n;
    }
};

// A bump allocator over a thread's scratch; with a null start it only counts.
struct Arena {
    char* start;
    std::size_t used = 0;
    template <class U>
    U* take(std::int64_t count) {
        U* p = reinterpret_cast<U*>(start + used);
        used += (std::size_t(count) * sizeof(U) + 63) / 64 * 64;
        return p;
    }
};

template <class T>
struct Scratch {
    Link<T> link;
    Vec<T>* x;         // narrow: (strips, width)
    T* rows;           // wide: (block, width), when X cannot be used where it is; CSR: (LANES, factor_columns)
    T* products;       // wide: (block, padded)
    Vec<T>* z;         // (strips, factor_columns)
    Vec<T>* lanes;     // narrow gradient: (factor_columns, width) registers, still to be summed over lanes
    T* gradient;       // wide gradient: (factor_columns, width)
    std::size_t bytes;

    Scratch(const Job<T>& job, void* start, bool sparse) {
        const Plan<T> plan(job);
        Arena arena{static_cast<char*>(start)};
        const int heads = job.models * job.outputs;
        link.f = arena.take<Vec<T>>((sparse ? 1 : plan.strips) * heads);
        link.y = arena.take<Vec<T>>(job.outputs);
        link.before = arena.take<Vec<T>>(job.degree);
        link.terms = arena.take<Vec<T>>(job.want == Want::terms ? heads * term_count(job) : 0);
        const bool narrow = !sparse && !plan.wide, wide = !sparse && plan.wide, gradient = job.want == Want::gradient;
        z = arena.take<Vec<T>>((sparse ? 1 : plan.strips) * job.factor_columns + LANES<T>);
        x = arena.take<Vec<T>>(narrow ? plan.strips * job.width : 0);
        rows = arena.take<T>(sparse ? LANES<T> * job.factor_columns : wide && !plan.direct ? plan.block * job.width : 0);
        products = arena.take<T>(wide ? plan.block * plan.padded : 0);
        lanes = arena.take<Vec<T>>(narrow && gradient ? job.factor_columns * job.width : 0);
        this->gradient = arena.take<T>(wide && gradient ? job.factor_columns * job.width : 0);
        bytes = arena.used;
    }
};

// Asks for the cache lines of the next block, one in each step of the loops over the current one: all at once they would stall it.
struct Prefetch {
    const char* next;
    const char* end;
    void step() {
        if (next < end) {
            __builtin_prefetch(next, 0, 2);
            next += 64;
        }
    }
};

template <class T>
Prefetch prefetch_rows(const Job<T>& job, std::int64_t begin, std::int64_t end) {
    if (begin >= end || job.column_stride != 1 || job.row_stride < job.columns) return {nullptr, nullptr};
    return {reinterpret_cast<const char*>(job.x + begin * job.row_stride), reinterpret_cast<const char*>(job.x + end * job.row_stride)};
}

// ---- narrow

// One strip of X in its basis: (width) registers; rows past `count` are zero.
template <class T>
void load_strip(const Job<T>& job, std::int64_t row, int count, Vec<T>* strip) {
    constexpr int n = LANES<T>;
    const T* x = job.x + row * job.row_stride;
    const bool readable = (job.rows - row - n) * job.row_stride + job.columns >= n;  // LANES elements from the start of each row
    if (count == n && job.column_stride == 1 && job.columns >= n) {
        rows_to_strip<T>(x, job.row_stride, job.columns, strip);
    } else if (count == n && job.column_stride == 1 && job.row_stride >= job.columns && readable) {
        Vec<T> square[n];
        for (int i = 0; i < n; ++i) square[i] = load(x + i * job.row_stride);
        transpose<T>(square);
        for (int i = 0; i < job.columns; ++i) strip[i] = square[i];
    } else if (count == n && job.row_stride == 1) {
        for (std::int64_t j = 0; j < job.columns; ++j) strip[j] = load(x + j * job.column_stride);
    } else {
        for (std::int64_t j = 0; j < job.columns; ++j) {
            strip[j] = Vec<T>{};
            for (int i = 0; i < count; ++i) strip[j][i] = x[i * job.row_stride + j * job.column_stride];
        }
    }
    const Basis<T>& basis = job.basis;
    if (basis.shift) {
        const Vec<T> top = splat<T>(basis.clip);
        for (std::int64_t j = 0; j < job.columns; ++j)
            strip[j] = smallest(largest((strip[j] - basis.shift[j]) * basis.scale[j], -top), top);
    }
    if (basis.constant != 0) strip[job.columns] = splat<T>(basis.constant);
    if (basis.unit_rows) {
        Vec<T> norm{};
        for (std::int64_t j = 0; j < job.width; ++j) norm += strip[j] * strip[j];
        for (int i = 0; i < n; ++i) norm[i] = norm[i] > 0 ? T(1) / std::sqrt(norm[i]) : T(1);
        for (std::int64_t j = 0; j < job.width; ++j) strip[j] *= norm;
    }
}

template <class T, int S, int K>
void narrow_forward_tile(const Vec<T>* x, std::int64_t width, const T* factors, Vec<T>* z, std::int64_t columns, Prefetch& ahead) {
    Vec<T> acc[S][K] = {};
    for (std::int64_t j = 0; j < width; ++j) {
        ahead.step();
        Vec<T> own[S];
#pragma GCC unroll 8
        for (int s = 0; s < S; ++s) own[s] = x[s * width + j];
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
            const Vec<T> factor = splat<T>(factors[j * K + k]);
#pragma GCC unroll 8
            for (int s = 0; s < S; ++s) acc[s][k] += own[s] * factor;
        }
    }
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s)
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) z[s * columns + k] = acc[s][k];
}
template <class T, int K = FORWARD_FACTORS>
void narrow_forward(int factors_in_tile, const Vec<T>* x, std::int64_t width, const T* factors, Vec<T>* z, std::int64_t columns,
                    Prefetch& ahead) {
    if constexpr (K > 0) {
        if (factors_in_tile == K)
            narrow_forward_tile<T, FORWARD_STRIPS, K>(x, width, factors, z, columns, ahead);
        else
            narrow_forward<T, K - 1>(factors_in_tile, x, width, factors, z, columns, ahead);
    }
}

template <class T, int K, int J>
void narrow_backward_tile(const Vec<T>* x, std::int64_t width, const Vec<T>* slopes, std::int64_t columns, std::int64_t strips, Vec<T>* g,
                          Prefetch& ahead) {
    Vec<T> acc[K][J];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) acc[k][j] = g[k * width + j];
    for (std::int64_t s = 0; s < strips; ++s, x += width, slopes += columns) {
        ahead.step();
        Vec<T> own[K];
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) own[k] = slopes[k];
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) {
            const Vec<T> column = x[j];
#pragma GCC unroll 8
            for (int k = 0; k < K; ++k) acc[k][j] += own[k] * column;
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
        for (int j = 0; j < J; ++j) g[k * width + j] = acc[k][j];
}
template <class T, int K = BACKWARD_FACTORS, int J = BACKWARD_COLUMNS>
void narrow_backward(int k, int j, const Vec<T>* x, std::int64_t width, const Vec<T>* slopes, std::int64_t columns, std::int64_t strips,
                     Vec<T>* g, Prefetch& ahead) {
    if constexpr (K > 0 && J > 0) {
        if (k == K && j == J)
            narrow_backward_tile<T, K, J>(x, width, slopes, columns, strips, g, ahead);
        else if (k == K)
            narrow_backward<T, K, J - 1>(k, j, x, width, slopes, columns, strips, g, ahead);
        else
            narrow_backward<T, K - 1, J>(k, j, x, width, slopes, columns, strips, g, ahead);
    }
}

template <class T>
void narrow_block(const Job<T>& job, const T* packed, const Scratch<T>& s, std::int64_t row, std::int64_t end, std::int64_t following,
                  const Sums& sums) {
    constexpr int n = LANES<T>;
    const std::int64_t strips = (end - row + n - 1) / n, columns = job.factor_columns, width = job.width;
    for (std::int64_t i = 0; i < strips; ++i) load_strip<T>(job, row + i * n, int(at_most(n, end - row - i * n)), s.x + i * width);
    Prefetch ahead = prefetch_rows(job, end, following);
    // Strips past the last one are computed too, from whatever the scratch holds, and not used.
    for (std::int64_t i = 0; i < strips; i += FORWARD_STRIPS)
        for (std::int64_t k = 0; k < columns; k += FORWARD_FACTORS)
            narrow_forward<T>(int(at_most(FORWARD_FACTORS, columns - k)), s.x + i * width, width, packed + k * width, s.z + i * columns + k, columns, ahead);
    link_block<T>(job, s.link, row, end, s.z, sums);
    if (job.want != Want::gradient) return;
    for (std::int64_t j = 0; j < width; j += BACKWARD_COLUMNS)
        for (std::int64_t k = 0; k < columns; k += BACKWARD_FACTORS)
            narrow_backward<T>(int(at_most(BACKWARD_FACTORS, columns - k)), int(at_most(BACKWARD_COLUMNS, width - j)), s.x + j, width,
                               s.z + k, columns, strips, s.lanes + k * width + j, ahead);
}

// ---- wide

// Rows of X in their basis, one after the other: (count, width).
template <class T>
void load_rows(const Job<T>& job, std::int64_t row, std::int64_t count, T* rows) {
    const Basis<T>& basis = job.basis;
    for (std::int64_t i = 0; i < count; ++i, rows += job.width) {
        const T* x = job.x + (row + i) * job.row_stride;
        if (basis.shift)
            for (std::int64_t j = 0; j < job.columns; ++j) {
                const T value = (x[j * job.column_stride] - basis.shift[j]) * basis.scale[j];
                const T above = value > -basis.clip ? value : -basis.clip;
                rows[j] = above < basis.clip ? above : basis.clip;
            }
        else
            for (std::int64_t j = 0; j < job.columns; ++j) rows[j] = x[j * job.column_stride];
        if (basis.constant != 0) rows[job.columns] = basis.constant;
        if (basis.unit_rows) {
            T norm = 0;
            for (std::int64_t j = 0; j < job.width; ++j) norm += rows[j] * rows[j];
            const T scale = norm > 0 ? T(1) / std::sqrt(norm) : T(1);
            for (std::int64_t j = 0; j < job.width; ++j) rows[j] *= scale;
        }
    }
}

// products (rows, padded) += x (rows, width) times packed factors (width, padded), B rows by R registers of factors.
template <class T, int B, int R>
void wide_forward_tile(const T* x, std::int64_t stride, std::int64_t width, const T* factors, std::int64_t padded, T* products) {
    constexpr int n = LANES<T>;
    Vec<T> acc[B][R];
#pragma GCC unroll 24
    for (int b = 0; b < B; ++b)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[b][r] = load(products + b * padded + r * n);
    for (std::int64_t j = 0; j < width; ++j) {
        Vec<T> own[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) own[r] = load(factors + j * padded + r * n);
#pragma GCC unroll 24
        for (int b = 0; b < B; ++b) {
            const Vec<T> value = splat<T>(x[b * stride + j]);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) acc[b][r] += value * own[r];
        }
    }
#pragma GCC unroll 24
    for (int b = 0; b < B; ++b)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) store(products + b * padded + r * n, acc[b][r]);
}
template <class T, int R>
void wide_forward_rows(const T* x, std::int64_t stride, std::int64_t count, std::int64_t width, const T* factors, std::int64_t padded, T* products) {
    constexpr int B = WIDE_ROWS * WIDE_REGISTERS / R;
    std::int64_t b = 0;
    for (; b + B <= count; b += B) wide_forward_tile<T, B, R>(x + b * stride, stride, width, factors, padded, products + b * padded);
    for (; b < count; ++b) wide_forward_tile<T, 1, R>(x + b * stride, stride, width, factors, padded, products + b * padded);
}

// gradient (K rows of it, width long) += slopes times x for R registers of columns; lanes before `skip` have been done already.
template <class T, int K, int R>
void wide_backward_tile(const T* x, std::int64_t stride, std::int64_t count, const Vec<T>* slopes, std::int64_t columns, T* g, std::int64_t width,
                        int skip) {
    constexpr int n = LANES<T>;
    Vec<T> acc[K][R] = {};
    const T* own = reinterpret_cast<const T*>(slopes);
    for (std::int64_t b = 0; b < count; ++b) {
        Vec<T> row[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) row[r] = load(x + b * stride + r * n);
        const T* slope = own + (b / n) * columns * n + b % n;
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k) {
            const Vec<T> value = splat<T>(slope[k * n]);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) acc[k][r] += value * row[r];
        }
    }
    if (skip) {
        for (int k = 0; k < K; ++k)
            for (int i = skip; i < n; ++i) g[k * width + i] += acc[k][0][i];
        return;
    }
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) store(g + k * width + r * n, load(g + k * width + r * n) + acc[k][r]);
}
template <class T, int K = WIDE_ROWS>
void wide_backward(int k, int registers, const T* x, std::int64_t stride, std::int64_t count, const Vec<T>* slopes, std::int64_t columns, T* g,
                   std::int64_t width, int skip) {
    if constexpr (K > 0) {
        if (k != K) return wide_backward<T, K - 1>(k, registers, x, stride, count, slopes, columns, g, width, skip);
        switch (registers) {
            case 1: return wide_backward_tile<T, K, 1>(x, stride, count, slopes, columns, g, width, skip);
            case 2: return wide_backward_tile<T, K, 2>(x, stride, count, slopes, columns, g, width, skip);
            default: return wide_backward_tile<T, K, 3>(x, stride, count, slopes, columns, g, width, skip);
        }
    }
}

template <class T>
void wide_block(const Job<T>& job, const Plan<T>& plan, const T* packed, const Scratch<T>& s, std::int64_t row, std::int64_t end, const Sums& sums) {
    constexpr int n = LANES<T>;
    const std::int64_t count = end - row, columns = job.factor_columns, width = job.width, padded = plan.padded;
    const std::int64_t stride = plan.direct ? job.row_stride : width;
    const T* x = plan.direct ? job.x + row * job.row_stride : s.rows;
    if (!plan.direct) load_rows<T>(job, row, count, s.rows);

    std::memset(s.products, 0, std::size_t(round_up(count, n) * padded) * sizeof(T));
    constexpr std::int64_t depth = 256;  // columns of X at a time, so that the factors they meet stay in the first cache
    for (std::int64_t k = 0; k < padded; k += WIDE_REGISTERS * n)
        for (std::int64_t j = 0; j < width; j += depth) {
            const std::int64_t d = at_most(depth, width - j);
            const T* factors = packed + j * padded + k;
            switch (at_most(WIDE_REGISTERS, (padded - k) / n)) {
                case 1: wide_forward_rows<T, 1>(x + j, stride, count, d, factors, padded, s.products + k); break;
                case 2: wide_forward_rows<T, 2>(x + j, stride, count, d, factors, padded, s.products + k); break;
                default: wide_forward_rows<T, 3>(x + j, stride, count, d, factors, padded, s.products + k);
            }
        }
    for (std::int64_t i = 0; i * n < count; ++i)
        rows_to_strip<T>(s.products + i * n * padded, padded, padded, s.z + i * columns);  // the next strip overwrites the padding
    link_block<T>(job, s.link, row, end, s.z, sums);
    if (job.want != Want::gradient) return;

    for (std::int64_t j = 0; j < width;) {
        const std::int64_t whole = (width - j) / n;
        const int registers = int(at_least(1, at_most(WIDE_REGISTERS, whole)));
        const std::int64_t start = whole ? j : width - n;
        for (std::int64_t k = 0; k < columns; k += WIDE_ROWS)
            wide_backward<T>(int(at_most(WIDE_ROWS, columns - k)), registers, x + start, stride, count, s.z + k, columns,
                             s.gradient + k * width + start, width, int(j - start));
        j = whole ? j + registers * n : width;
    }
}

// ---- both

template <class T>
std::size_t packed_bytes(const Job<T>& job) {
    return std::size_t(job.width * Plan<T>(job).padded) * sizeof(T);
}
template <class T>
void pack(const Job<T>& job, void* packed) {
    const Plan<T> plan(job);
    T* out = static_cast<T*>(packed);
    if (plan.wide) {
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < plan.padded; ++k)
                out[j * plan.padded + k] = k < job.factor_columns ? job.factors[j * job.factor_columns + k] : T(0);
        return;
    }
    for (std::int64_t k = 0; k < job.factor_columns; k += FORWARD_FACTORS) {
        const std::int64_t count = at_most(FORWARD_FACTORS, job.factor_columns - k);
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t i = 0; i < count; ++i) *out++ = job.factors[j * job.factor_columns + k + i];
    }
}
template <class T>
std::size_t scratch_bytes(const Job<T>& job) {
    return Scratch<T>(job, nullptr, job.indptr32 || job.indptr64).bytes;
}
template <class T>
void dense(const Job<T>& job, const void* packed, void* scratch, std::int64_t begin, std::int64_t end, Sums sums) {
    const Plan<T> plan(job);
    const Scratch<T> s(job, scratch, false);
    const T* factors = static_cast<const T*>(packed);
    if (job.want == Want::gradient) {
        if (plan.wide)
            std::memset(s.gradient, 0, std::size_t(job.factor_columns * job.width) * sizeof(T));
        else
            std::memset(s.lanes, 0, std::size_t(job.factor_columns * job.width) * sizeof(Vec<T>));
    }
    for (std::int64_t row = begin; row < end; row += plan.block) {
        const std::int64_t stop = at_most(row + plan.block, end), following = at_most(stop + plan.block, end);
        if (plan.wide)
            wide_block<T>(job, plan, factors, s, row, stop, sums);
        else
            narrow_block<T>(job, factors, s, row, stop, following, sums);
    }
}
// total (factor_columns, width) += the gradient that `dense` left in scratch.
template <class T>
void add_gradient(const Job<T>& job, void* scratch, double* total) {
    constexpr int n = LANES<T>;
    const Scratch<T> s(job, scratch, false);
    const std::int64_t size = job.factor_columns * job.width;
    if (Plan<T>(job).wide) {
        for (std::int64_t i = 0; i < size; ++i) total[i] += double(s.gradient[i]);
        return;
    }
    std::int64_t i = 0;
    for (; i + n <= size; i += n) {
        Vec<T> square[n];
        for (int lane = 0; lane < n; ++lane) square[lane] = s.lanes[i + lane];
        transpose<T>(square);
        for (int step = n / 2; step > 0; step /= 2)
            for (int lane = 0; lane < step; ++lane) square[lane] += square[lane + step];
        for (int lane = 0; lane < n; ++lane) total[i + lane] += double(square[0][lane]);
    }
    for (; i < size; ++i) total[i] += sum<T>(s.lanes[i]);
}

// -------------------------------------------------------------------------------------------------------------------- CSR X

template <class T>
struct Entries {
    const Job<T>& job;
    std::int64_t begin(std::int64_t row) const { return job.indptr32 ? job.indptr32[row] : job.indptr64[row]; }
    std::int64_t column(std::int64_t e) const { return job.indices32 ? job.indices32[e] : job.indices64[e]; }
    // What entry e adds to the basis of an all-zero row.
    T value(std::int64_t e, std::int64_t j) const {
        const T x = job.x[e];
        if (!job.basis.shift) return x;
        const T clip = job.basis.clip, moved = (x - job.basis.shift[j]) * job.basis.scale[j];
        const T t = moved < -clip ? -clip : moved > clip ? clip : moved;
        return job.zero_row ? t - job.zero_row[j] : t;
    }
};

constexpr std::int64_t ENTRIES_AHEAD = 12;

// 1 / norm of each row, from the norm of zero_row and what the entries change.
template <class T>
T row_scale(const Job<T>& job, std::int64_t row, double zero_norm) {
    if (!job.basis.unit_rows) return T(1);
    const Entries<T> entries{job};
    double norm = zero_norm;
    for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
        const std::int64_t j = entries.column(e);
        const double zero = job.zero_row ? double(job.zero_row[j]) : 0.0, change = double(entries.value(e, j));
        norm += change * (change + 2 * zero);
    }
    return norm > 0 ? T(1.0 / std::sqrt(norm)) : T(1);
}

// z (factor_columns) = one row times factors, R registers at a time.
template <class T, int R>
void sparse_project(const Job<T>& job, std::int64_t row, std::int64_t k, T* z) {
    constexpr int n = LANES<T>;
    const Entries<T> entries{job};
    const std::int64_t last = entries.begin(job.rows);
    Vec<T> acc[R] = {};
    for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
        if (e + ENTRIES_AHEAD < last) {
            const T* ahead = job.factors + entries.column(e + ENTRIES_AHEAD) * job.factor_columns + k;
            for (int r = 0; r < R; ++r) __builtin_prefetch(ahead + r * n);
        }
        const std::int64_t j = entries.column(e);
        const Vec<T> value = splat<T>(entries.value(e, j));
        const T* factors = job.factors + j * job.factor_columns + k;
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r] += value * load(factors + r * n);
    }
    for (int r = 0; r < R; ++r) store(z + k + r * n, acc[r]);
}
template <class T>
void sparse_project_row(const Job<T>& job, std::int64_t row, T* z) {
    constexpr int n = LANES<T>;
    const std::int64_t columns = job.factor_columns;
    if (columns < n) {
        const Entries<T> entries{job};
        for (std::int64_t k = 0; k < columns; ++k) z[k] = 0;
        for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
            const std::int64_t j = entries.column(e);
            const T value = entries.value(e, j);
            for (std::int64_t k = 0; k < columns; ++k) z[k] += value * job.factors[j * columns + k];
        }
        return;
    }
    std::int64_t k = 0;
    for (; k + 4 * n <= columns; k += 4 * n) sparse_project<T, 4>(job, row, k, z);
    for (; k + 2 * n <= columns; k += 2 * n) sparse_project<T, 2>(job, row, k, z);
    for (; k < columns; k += n) sparse_project<T, 1>(job, row, at_most(k, columns - n), z);
}

template <class T>
void sparse_rows(const Job<T>& job, const T* offset, void* scratch, std::int64_t begin, std::int64_t end, T* slopes, double* base_slopes,
                 Sums sums) {
    constexpr int n = LANES<T>;
    const Scratch<T> s(job, scratch, true);
    const std::int64_t columns = job.factor_columns;
    double zero_norm = 0;
    if (job.basis.unit_rows && job.zero_row)
        for (std::int64_t j = 0; j < job.width; ++j) zero_norm += double(job.zero_row[j]) * double(job.zero_row[j]);
    for (std::int64_t row = begin; row < end; row += n) {
        const int count = int(at_most(n, end - row));
        T scale[n];
        for (int i = 0; i < n; ++i) {
            T* z = s.rows + i * columns;
            scale[i] = i < count ? row_scale<T>(job, row + i, zero_norm) : T(0);
            if (i < count) sparse_project_row<T>(job, row + i, z);
            for (std::int64_t k = 0; k < columns; ++k) z[k] = i < count ? (z[k] + offset[k]) * scale[i] : T(0);
        }
        rows_to_strip<T>(s.rows, columns, columns, s.z);
        link_block<T>(job, s.link, row, row + count, s.z, sums);
        if (job.want != Want::gradient) continue;
        const Vec<T> scales = load(scale);
        for (std::int64_t k = 0; k < columns; ++k) {
            s.z[k] *= scales;
            base_slopes[k] += sum<T>(s.z[k]);
        }
        strip_to_rows<T>(s.z, columns, columns, count, slopes + (row - begin) * columns);
    }
}

template <class T>
void sparse_columns(const Job<T>& job, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last, const T* slopes, T* gradient) {
    constexpr int n = LANES<T>;
    const Entries<T> entries{job};
    const std::int64_t columns = job.factor_columns, total = entries.begin(job.rows);
    for (std::int64_t row = begin; row < end; ++row, slopes += columns)
        for (std::int64_t e = entries.begin(row); e < entries.begin(row + 1); ++e) {
            if (e + ENTRIES_AHEAD < total) {
                const T* ahead = gradient + entries.column(e + ENTRIES_AHEAD) * columns;
                __builtin_prefetch(ahead, 1);
                __builtin_prefetch(ahead + columns - 1, 1);
            }
            const std::int64_t j = entries.column(e);
            if (j < first || j >= last) continue;
            const T value = entries.value(e, j);
            T* own = gradient + j * columns;
            std::int64_t k = 0;
            for (; k + n <= columns; k += n) store(own + k, load(own + k) + splat<T>(value) * load(slopes + k));
            for (; k < columns; ++k) own[k] += value * slopes[k];
        }
}

template <class T>
constexpr Kernel<T> kernel{packed_bytes<T>, pack<T>, scratch_bytes<T>, dense<T>, add_gradient<T>, sparse_rows<T>, sparse_columns<T>};

}  // namespace

#define JOIN(a, b) a##b
#define NAME(prefix, variant) JOIN(prefix, variant)
extern const Kernel<float> NAME(float_kernel_, VARIANT);
extern const Kernel<double> NAME(double_kernel_, VARIANT);
const Kernel<float> NAME(float_kernel_, VARIANT) = kernel<float>;
const Kernel<double> NAME(double_kernel_, VARIANT) = kernel<double>;

}  // namespace tensormachines
