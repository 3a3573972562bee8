// From the projections of a row to its outputs, losses and slopes: plain arithmetic on strips. Included by
// kernel.cpp only, inside its unnamed namespace.

// ---- losses

constexpr double INVERSE_FACTORIAL[] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// exp(x) for x <= 0, to rounding; denormal results may become 0.
template <class T>
inline Vec<T> exp_negative(Vec<T> x) {
    constexpr bool single = sizeof(T) == 4;
    typedef typename Index<sizeof(T)>::type Whole;
    const Vec<T> least = splat<T>(single ? T(-87) : T(-708));
    const auto vanishes = x < least;
    x = largest(x, least);
    const T log2e = T(1.4426950408889634074),
            magic = single ? T(12582912) : T(6755399441055744);  // 1.5 * 2^mantissa: rounds to integer
    const Vec<T> shifted = x * log2e + magic;
    const Vec<T> n = shifted - magic;
    const T high = single ? T(0.693359375) : T(6.93147180369123816490e-01);
    const T low = single ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
    const Vec<T> r = (x - n * high) - n * low;
    constexpr int terms = single ? 7 : 13;  // odd: even and odd powers, which do not wait for each other
    const Vec<T> square = r * r;
    Vec<T> even = splat<T>(T(INVERSE_FACTORIAL[terms - 1])), odd = splat<T>(T(INVERSE_FACTORIAL[terms]));
#pragma GCC unroll 16
    for (int k = terms - 3; k >= 0; k -= 2) {
        even = even * square + T(INVERSE_FACTORIAL[k]);
        odd = odd * square + T(INVERSE_FACTORIAL[k + 1]);
    }
    const Vec<T> series = odd * r + even;
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
    constexpr int terms = sizeof(T) == 4 ? 8 : 18;  // even: every other power by itself
    const Vec<T> t4 = t2 * t2;
    Vec<T> even = splat<T>(T(1) / T(2 * terms - 3)), odd = splat<T>(T(1) / T(2 * terms - 1));
#pragma GCC unroll 20
    for (int k = terms - 2; k > 0; k -= 2) {
        even = even * t4 + T(1) / T(2 * k - 3);
        odd = odd * t4 + T(1) / T(2 * k - 1);
    }
    return (t + t) * (odd * t2 + even);
}

// exp(x), infinity where it overflows.
template <class T>
inline Vec<T> exponential(Vec<T> x) {
    const auto negative = x < Vec<T>{};
    const Vec<T> small = exp_negative<T>(negative ? x : -x);
    return negative ? small : splat<T>(1) / small;
}

// log(x) for x >= 0; that of 0, or of a denormal number, is the log of the smallest normal one.
template <class T>
inline Vec<T> logarithm(Vec<T> x) {
    x = largest(x, splat<T>(std::numeric_limits<T>::min()));
    for (int i = 0; i < LANES<T>; ++i) x[i] = std::log(x[i]);
    return x;
}

// Each loss returns the weighted losses of one strip; f (outputs) holds the outputs on entry and
// the weighted slopes dloss/df on return.
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
inline Vec<T> logistic_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs) {
    // The margin m is z or -z, whichever should be positive;
    // loss = log(1 + exp(-m)), slope = -+ 1 / (1 + exp(m)).
    const Vec<T> zero{}, one = splat<T>(1);
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const auto positive = y[o] > zero;
        const Vec<T> margin = positive ? f[o] : -f[o];
        const Vec<T> small = exp_negative<T>(margin < zero ? margin : -margin);  // exp(-|m|)
        total += largest(-margin, zero) + log_one_plus<T>(small);
        const Vec<T> slope = weight * (margin < zero ? one : small) / (one + small);
        f[o] = positive ? -slope : slope;
    }
    return total * weight;
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
// Half the deviance of numbers whose mean is exp(f).
template <class T>
inline Vec<T> poisson_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs) {
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> mean = exponential<T>(f[o]), slope = mean - y[o];
        total += slope + y[o] * (logarithm<T>(y[o]) - f[o]);
        f[o] = slope * weight;
    }
    return total * weight;
}
template <class T>
inline Vec<T> gamma_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs) {
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> excess = y[o] * exponential<T>(-f[o]) - T(1);
        total += excess + f[o] - logarithm<T>(y[o]);
        f[o] = -excess * weight;
    }
    return total * weight;
}
template <class T>
inline Vec<T> tweedie_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs, T power) {
    const T a = power - 1, b = 2 - power;  // both positive
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> ratio = y[o] * exponential<T>(f[o] * -a), mean = exponential<T>(f[o] * b);
        Vec<T> least;
        for (int i = 0; i < LANES<T>; ++i) least[i] = std::pow(y[o][i], b);
        total += ratio / a + mean / b - least / (a * b);
        f[o] = (mean - ratio) * weight;
    }
    return total * weight;
}

// Within this distance of a target, absolute values are replaced by a parabola: WIDTH of _model/losses.py.
template <class T>
constexpr T WIDTH = T(0.02);

// A straight line in |f - y| where that is more than `width`, and a parabola below, with the value `at_zero`
// at 0; times `size`, plus `tilt` times f - y. Nothing that is large is subtracted from the parabola: small
// losses stay exact.
template <class T>
inline Vec<T> rounded_loss(Vec<T>* f, const Vec<T>* y, Vec<T> weight, int outputs, T width, T size, T tilt,
                           T at_zero) {
    Vec<T> total{};
    for (int o = 0; o < outputs; ++o) {
        const Vec<T> zero{}, difference = f[o] - y[o],
                     distance = difference < zero ? -difference : difference;
        const auto near = distance < splat<T>(width);
        const Vec<T> rounded =
            near ? distance * distance / (2 * width) + at_zero : distance + (at_zero - width / 2);
        total += rounded * size + difference * tilt;
        const Vec<T> sign = difference < zero ? splat<T>(-1) : splat<T>(1);
        f[o] = ((near ? difference / width : sign) * size + tilt) * weight;
    }
    return total * weight;
}

// ---- terms

// Sum over the `rank` terms of degree P, whose factors are `rank` registers apart; the products are kept
// where wanted.
template <class T, int P>
inline Vec<T> degree_output(const Vec<T>* z, int rank, Vec<T>* products) {
    Vec<T> total{};
    for (int i = 0; i < rank; ++i, ++z) {
        Vec<T> product = z[0];
#pragma GCC unroll 8
        for (int j = 1; j < P; ++j) product *= z[j * rank];
        if (products) products[i] = product;
        total += rounded(product);
    }
    return total;
}
template <class T>
Vec<T> any_degree_output(const Vec<T>* z, int p, int rank, Vec<T>* products) {
    Vec<T> total{};
    for (int i = 0; i < rank; ++i, ++z) {
        Vec<T> product = z[0];
        for (int j = 1; j < p; ++j) product *= z[std::int64_t(j) * rank];
        if (products) products[i] = product;
        total += rounded(product);
    }
    return total;
}

// z becomes the slope of its term times the product of its *other* factors, as prefix times suffix: a
// projection may be exactly zero. The slopes of the terms are `step` apart: 0 if they have one in common.
template <class T, int P>
inline __attribute__((always_inline)) void degree_slopes(Vec<T>* z, int rank, const Vec<T>* slopes,
                                                         int step) {
    for (int i = 0; i < rank; ++i, ++z, slopes += step) {
        Vec<T> factor[P], before[P];
        before[0] = *slopes;
#pragma GCC unroll 8
        for (int j = 0; j < P; ++j) factor[j] = z[j * rank];
#pragma GCC unroll 8
        for (int j = 1; j < P; ++j) before[j] = before[j - 1] * factor[j - 1];
        z[(P - 1) * rank] = before[P - 1];
        Vec<T> suffix = factor[P - 1];
#pragma GCC unroll 8
        for (int j = P - 2; j >= 0; --j) {
            z[j * rank] = before[j] * suffix;
            if (j) suffix *= factor[j];
        }
    }
}
template <class T>
void any_degree_slopes(Vec<T>* z, int p, int rank, const Vec<T>* slopes, int step, Vec<T>* before) {
    for (int i = 0; i < rank; ++i, ++z, slopes += step) {
        before[0] = *slopes;
        for (int j = 1; j < p; ++j) before[j] = before[j - 1] * z[std::int64_t(j - 1) * rank];
        Vec<T> suffix = splat<T>(1);
        for (int j = p - 1; j >= 0; --j) {
            const Vec<T> own = z[std::int64_t(j) * rank];
            z[std::int64_t(j) * rank] = before[j] * suffix;
            suffix *= own;
        }
    }
}

// f plus the terms of a set, whose projections are z; the products are kept where wanted.
template <class T>
inline Vec<T> add_terms(const Job<T>& job, const Vec<T>* z, Vec<T> f, Vec<T>* products) {
    for (int p = 2, rank = job.rank; p <= job.degree; z += std::int64_t(p) * rank, ++p) {
        switch (p) {
            case 2:
                f += degree_output<T, 2>(z, rank, products);
                break;
            case 3:
                f += degree_output<T, 3>(z, rank, products);
                break;
            case 4:
                f += degree_output<T, 4>(z, rank, products);
                break;
            case 5:
                f += degree_output<T, 5>(z, rank, products);
                break;
            case 6:
                f += degree_output<T, 6>(z, rank, products);
                break;
            default:
                f += any_degree_output<T>(z, p, rank, products);
        }
        if (products) products += rank;
    }
    return f;
}
template <class T>
inline void set_slopes(const Job<T>& job, Vec<T>* z, const Vec<T>* slopes, int step, Vec<T>* before) {
    const int rank = job.rank;
    for (int p = 2; p <= job.degree; z += std::int64_t(p) * rank, slopes += step * rank, ++p) switch (p) {
            case 2:
                degree_slopes<T, 2>(z, rank, slopes, step);
                break;
            case 3:
                degree_slopes<T, 3>(z, rank, slopes, step);
                break;
            case 4:
                degree_slopes<T, 4>(z, rank, slopes, step);
                break;
            case 5:
                degree_slopes<T, 5>(z, rank, slopes, step);
                break;
            case 6:
                degree_slopes<T, 6>(z, rank, slopes, step);
                break;
            default:
                any_degree_slopes<T>(z, p, rank, slopes, step, before);
        }
}

template <class T>
std::int64_t term_count(const Job<T>& job) {
    return std::int64_t(job.degree - 1) * job.rank;
}

// ---- shared terms: small products of matrices of registers, a few results at a time

constexpr int RESULTS_AT_ONCE = 4;

// result[i] += sum over j of  matrix[i * row + j * column] * vector[j], for i < count, j < length.
template <class T, int N>
inline void weighted_sums(const T* matrix, std::int64_t row, std::int64_t column, const Vec<T>* vector,
                          std::int64_t length, Vec<T>* result) {
    Vec<T> total[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) total[i] = result[i];
    for (std::int64_t j = 0; j < length; ++j)
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) total[i] += splat<T>(matrix[i * row + j * column]) * vector[j];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) result[i] = total[i];
}
template <class T>
void all_weighted_sums(const T* matrix, std::int64_t row, std::int64_t column, const Vec<T>* vector,
                       std::int64_t length, std::int64_t count, Vec<T>* result) {
    constexpr int n = RESULTS_AT_ONCE;
    std::int64_t i = 0;
    for (; i + n <= count; i += n)
        weighted_sums<T, n>(matrix + i * row, row, column, vector, length, result + i);
    for (; i < count; ++i) weighted_sums<T, 1>(matrix + i * row, row, column, vector, length, result + i);
}

// ---- a block of strips

// Everything that the strips of a block need besides their projections; part of a thread's scratch.
template <class T>
struct Link {
    Vec<T>* f;            // (strips, models * outputs): outputs, then slopes
    Vec<T>* y;            // (outputs)
    Vec<T>* before;       // (degree)
    Vec<T>* terms;        // (strips, models * sets * terms), if these are wanted or shared
    Vec<T>* term_slopes;  // (terms), if shared
    Vec<T>* weights;      // (models * outputs * terms), if shared: sums over the rows of a thread's part
    Vec<double>* value;   // (models), sums over a block
    Vec<double>* bias;    // (models * outputs)

    template <class Arena>
    void take(Arena& arena, const Job<T>& job, std::int64_t strips) {
        const std::int64_t outputs = job.models * job.outputs, terms = term_count(job);
        const bool shared = job.share && job.want == Want::gradient;
        f = arena.template take<Vec<T>>(strips * outputs);
        y = arena.template take<Vec<T>>(job.outputs);
        value = arena.template take<Vec<double>>(job.models);
        bias = arena.template take<Vec<double>>(outputs);
        before = arena.template take<Vec<T>>(job.degree);
        this->terms = arena.template take<Vec<T>>(
            job.share || job.want == Want::terms ? strips * job.models * job.sets * terms : 0);
        term_slopes = arena.template take<Vec<T>>(shared ? terms : 0);
        weights = arena.template take<Vec<T>>(shared ? outputs * terms : 0);
    }
};

// Before the first block of a thread's part, and after the last one.
template <class T>
void begin_sums(const Job<T>& job, const Link<T>& link) {
    if (!job.share || job.want != Want::gradient) return;
    std::memset(link.weights, 0, std::size_t(job.models * job.outputs * term_count(job)) * sizeof(Vec<T>));
}
template <class T>
void end_sums(const Job<T>& job, const Link<T>& link, const Sums& sums) {
    if (!job.share || job.want != Want::gradient) return;
    const std::int64_t each = job.outputs * term_count(job);
    for (int m = 0; m < job.models; ++m)
        for (std::int64_t i = 0; i < each; ++i)
            sums.head[m * job.head_size + job.outputs + i] += sum(link.weights[m * each + i]);
}

// Outputs of a block of strips, f = bias + everything; z is (strips, factor_columns).
template <class T>
void block_outputs(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end,
                   const Vec<T>* z) {
    constexpr int n = LANES<T>;
    const int outputs = job.models * job.outputs;
    const std::int64_t terms = term_count(job), all_terms = job.models * job.sets * terms;
    const bool keep = job.share || job.want == Want::terms;
    Vec<T>*f = link.f, *products = link.terms;
    for (; row < end; row += n, f += outputs) {
        Vec<T>* of_set = products;
        for (int m = 0; m < job.models; ++m, z += job.columns_of_model) {
            const T* head = job.head + m * job.head_size;
            Vec<T>* own = f + m * job.outputs;
            for (int o = 0; o < job.outputs; ++o) own[o] = splat<T>(head[o]) + z[o];
            for (int s = 0; s < job.sets; ++s, of_set += terms) {
                const Vec<T>* of_terms = z + job.outputs + s * job.set_columns;
                const Vec<T> total = add_terms<T>(job, of_terms, own[s], keep ? of_set : nullptr);
                if (!job.share) own[s] = total;
            }
            if (job.share)
                all_weighted_sums<T>(head + job.outputs, terms, 1, of_set - terms, terms, job.outputs, own);
        }
        const int count = int(at_most(n, end - row));
        if (job.want == Want::outputs)
            strip_to_rows<T>(f, outputs, outputs, count, job.result + row * outputs);
        if (job.want == Want::terms)
            strip_to_rows<T>(products, all_terms, all_terms, count, job.result + row * all_terms);
        if (job.share && job.want == Want::gradient) products += all_terms;
    }
}

// Losses of a block of strips; f turns from outputs into slopes.
template <class T>
void block_losses(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end,
                  const Sums& sums) {
    constexpr int n = LANES<T>;
    const int targets = job.targets;
    Vec<T>* f = link.f;
    for (int m = 0; m < job.models; ++m) link.value[m] = Vec<double>{};
    for (int h = 0; h < job.models * job.outputs; ++h) link.bias[h] = Vec<double>{};
    for (; row < end; row += n) {
        const int count = int(at_most(n, end - row));
        const Vec<T> weight = job.weight ? load_lanes(job.weight + row, 1, count) : count_lanes<T>(count);
        for (int t = 0; t < targets; ++t) link.y[t] = load_lanes(job.y + row * targets + t, targets, count);
        for (int m = 0; m < job.models; ++m, f += job.outputs) {
            if (job.offset)
                for (int o = 0; o < job.outputs; ++o)
                    f[o] += load_lanes(job.offset + row * job.outputs + o, job.outputs, count);
            Vec<T> loss{};
            switch (job.loss) {  // without a default: the compiler tells if a loss is missing
                case Loss::squared:
                    loss = squared_loss<T>(f, link.y, weight, job.outputs);
                    break;
                case Loss::logistic:
                    loss = logistic_loss<T>(f, link.y, weight, job.outputs);
                    break;
                case Loss::multinomial:
                    loss = multinomial_loss<T>(f, link.y, weight, job.outputs);
                    break;
                case Loss::poisson:
                    loss = poisson_loss<T>(f, link.y, weight, job.outputs);
                    break;
                case Loss::gamma:
                    loss = gamma_loss<T>(f, link.y, weight, job.outputs);
                    break;
                case Loss::tweedie:
                    loss = tweedie_loss<T>(f, link.y, weight, job.outputs, job.parameter);
                    break;
                case Loss::absolute:
                    loss = rounded_loss<T>(f, link.y, weight, job.outputs, WIDTH<T>, T(1), T(0),
                                           WIDTH<T> / 2);
                    break;
                case Loss::quantile:
                    loss = rounded_loss<T>(f, link.y, weight, job.outputs, WIDTH<T>, T(0.5),
                                           T(0.5) - job.parameter, WIDTH<T> / 2);
                    break;
                case Loss::huber:
                    loss = rounded_loss<T>(f, link.y, weight, job.outputs, job.parameter, job.parameter, T(0),
                                           T(0));
                    break;
            }
            link.value[m] += widen(loss);
            for (int o = 0; o < job.outputs; ++o) link.bias[m * job.outputs + o] += widen(f[o]);
        }
    }
    for (int m = 0; m < job.models; ++m) sums.value[m] += sum(link.value[m]);
    for (int m = 0; m < job.models; ++m)
        for (int o = 0; o < job.outputs; ++o)
            sums.head[m * job.head_size + o] += sum(link.bias[m * job.outputs + o]);
}

// A row of weight 0, or past the end, counts as absent, even where its terms overflow: 0 times infinity
// must not get into the sums.
template <class T>
void clear_absent(const Job<T>& job, std::int64_t row, std::int64_t end, Vec<T>* z) {
    constexpr int n = LANES<T>;
    for (; row < end; row += n, z += job.factor_columns) {
        const int count = int(at_most(n, end - row));
        bool all = count == n;
        for (int i = 0; all && job.weight && i < n; ++i) all = job.weight[row + i] != 0;
        if (all) continue;
        const Vec<T> weight = job.weight ? load_lanes(job.weight + row, 1, count) : count_lanes<T>(count);
        for (std::int64_t k = 0; k < job.factor_columns; ++k) z[k] = weight == Vec<T>{} ? Vec<T>{} : z[k];
    }
}

// Shared terms of model m: their slopes, from those of the outputs f and their products; adds to the sums of
// the weights.
template <class T>
void weight_slopes(const Job<T>& job, const Link<T>& link, int m, const Vec<T>* f, const Vec<T>* products) {
    const std::int64_t terms = term_count(job);
    const T* weights = job.head + m * job.head_size + job.outputs;
    for (std::int64_t t = 0; t < terms; ++t) link.term_slopes[t] = Vec<T>{};
    all_weighted_sums<T>(weights, 1, terms, f, job.outputs, terms, link.term_slopes);
    Vec<T>* sums = link.weights + m * job.outputs * terms;
    for (int o = 0; o < job.outputs; ++o)
        for (std::int64_t t = 0; t < terms; ++t) *sums++ += f[o] * products[t];
}

// Projections z of rows [row, end) to results, or to losses and slopes, the latter in place of z.
template <class T>
void link_block(const Job<T>& job, const Link<T>& link, std::int64_t row, std::int64_t end, Vec<T>* z,
                const Sums& sums) {
    if (job.want == Want::gradient) clear_absent<T>(job, row, end, z);
    block_outputs<T>(job, link, row, end, z);
    if (job.want != Want::gradient) return;
    block_losses<T>(job, link, row, end, sums);
    const std::int64_t strips = (end - row + LANES<T> - 1) / LANES<T>, terms = term_count(job);
    const Vec<T>*f = link.f, *products = link.terms;
    for (std::int64_t i = 0; i < strips; ++i)
        for (int m = 0; m < job.models; ++m, z += job.columns_of_model, f += job.outputs) {
            for (int o = 0; o < job.outputs; ++o) z[o] = f[o];
            if (!job.share) {
                for (int s = 0; s < job.sets; ++s)
                    set_slopes<T>(job, z + job.outputs + s * job.set_columns, f + s, 0, link.before);
                continue;
            }
            weight_slopes<T>(job, link, m, f, products);
            set_slopes<T>(job, z + job.outputs, link.term_slopes, 1, link.before);
            products += terms;
        }
}
