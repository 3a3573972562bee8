// Normalised adaptive gradient with steps that never overshoot, whatever the weight of a row: see
// tensormachines.peers.online_polynomial.
#include "online.hpp"

#include <cmath>
#include <limits>

namespace tensormachines {
namespace {

template <class T>
constexpr T SMALLEST = std::numeric_limits<T>::min();

template <class T>
struct Row {
    std::int64_t size;
    const std::int32_t* monomial;  // their numbers
    T* value;                      // their values, later in units of their scale
};

// The monomials' values, row by row.
template <class T, bool dense>
class Expander {
public:
    explicit Expander(const OnlineJob<T>& job) : job_(job), value_(job.values), number_(job.numbers) {}

    Row<T> operator()(std::int64_t row) {
        value_[0] = T(1);
        if constexpr (dense)
            return from_dense(job_.x + row * job_.columns);
        else
            return from_sparse(job_.indptr[row], job_.indptr[row + 1]);
    }

private:
    Row<T> from_dense(const T* x) {
        T *value = value_, *base = value + 1;
        for (std::int64_t c = 0; c < job_.columns; ++c) base[c] = x[c] * job_.unit[c];
        for (std::int64_t e = 0; e < job_.parents; ++e) {
            const std::int32_t* child = job_.children + e * job_.columns;
            const T factor = value[job_.parent[e]];
            for (std::int64_t c = 0; c < job_.columns; ++c)
                if (child[c] >= 0) value[child[c]] = factor * base[c];
        }
        return {job_.monomials, nullptr, value};
    }

    Row<T> from_sparse(std::int64_t begin, std::int64_t end) {
        std::int64_t size = 1;
        for (std::int64_t k = begin; k < end; ++k) {
            number_[size] = 1 + job_.indices[k];
            value_[size++] = job_.x[k] * job_.unit[job_.indices[k]];
        }
        const std::int64_t base = size;
        for (std::int64_t i = 1; i < size; ++i) {  // grows as it goes: children may have children
            const std::int32_t e = job_.expanded[number_[i]];
            if (e < 0) continue;
            const std::int32_t* child = job_.children + e * job_.columns;
            for (std::int64_t k = 1; k < base; ++k) {
                const std::int32_t number = child[number_[k] - 1];
                if (number < 0) continue;
                number_[size] = number;
                value_[size++] = value_[i] * value_[k];
            }
        }
        return {size, number_, value_};
    }

    const OnlineJob<T>& job_;
    T* value_;
    std::int32_t* number_;
};

// The change of the prediction of one row after following its loss downhill for a time t:
// d p / d t = -loss'(p).
double travel(OnlineLoss loss, double y, double p, double t) {
    if (loss == OnlineLoss::squared) return (p - y) * std::expm1(-t);
    // The margin m grows by d with d + exp(m) (exp(d) - 1) = t: convex, so that Newton's method descends to
    // its root from the right.
    const double sign = y > 0 ? 1 : -1, m = sign * p, e = std::exp(-std::abs(m));
    const double linear = m > 0 ? e : 1, steep = m > 0 ? 1 : e, goal = t * linear;
    const double first = goal / (linear + steep),
                 second = std::log1p(goal / steep);  // both are to the right of it
    double d = first < second ? first : second;
    for (int i = 0; i < 30; ++i) {
        const double grown = std::expm1(d),
                     next = d - (linear * d + steep * grown - goal) / (linear + steep * (grown + 1));
        if (!(next < d)) break;
        d = next;
    }
    return sign * d;
}

inline double slope(OnlineLoss loss, double y, double p) {
    if (loss == OnlineLoss::squared) return p - y;
    return y > 0 ? -1 / (1 + std::exp(p)) : 1 / (1 + std::exp(-p));
}

template <class T, bool dense>
void adapt_scales(const OnlineJob<T>& job, const Row<T>& row) {
    if constexpr (dense) {  // almost always there is nothing to do, which is quickly found
        int larger = 0;
#pragma omp simd reduction(| : larger)
        for (std::int64_t i = 0; i < row.size; ++i) larger |= std::abs(row.value[i]) > job.scale[i];
        if (!larger) return;
    }
    for (std::int64_t i = 0; i < row.size; ++i) {
        const std::int64_t j = dense ? i : row.monomial[i];
        const T size = std::abs(row.value[i]);
        if (!(size > job.scale[j])) continue;
        const T ratio = job.scale[j] / size;
        for (int k = 0; k < job.outputs; ++k) job.squares[k * job.monomials + j] *= ratio * ratio;
        job.scale[j] = size;
        job.inverse[j] = size >= SMALLEST<T> ? 1 / size : 0;
    }
}

template <class T, bool dense, bool penalised>
void learn_row(const OnlineJob<T>& job, const Row<T>& row, std::int64_t number) {
    const T h = job.weight ? job.weight[number] : T(1);
    if (!(h > 0)) return;
    adapt_scales<T, dense>(job, row);
    // Local and restricted: else every store might change the next pointer, and the loops would not become
    // vector code.
    const std::int64_t n = row.size;
    const std::int32_t* __restrict monomial = row.monomial;
    const T* __restrict inverse = job.inverse;
    T* __restrict u = row.value, * __restrict direction = job.direction;
    T norm = 0;
#pragma omp simd reduction(+ : norm)
    for (std::int64_t i = 0; i < n; ++i) {
        u[i] *= inverse[dense ? i : monomial[i]];
        norm += u[i] * u[i];
    }
    job.sums[0] += h;
    job.sums[1] += double(h) * norm;
    const T multiplier = T(std::sqrt(job.sums[0] / job.sums[1]));

    for (int k = 0; k < job.outputs; ++k) {
        T* __restrict weights = job.weights + k * job.monomials, * __restrict squares =
                                                                     job.squares + k * job.monomials;
        T p = 0;
#pragma omp simd reduction(+ : p)
        for (std::int64_t i = 0; i < n; ++i) p += weights[dense ? i : monomial[i]] * u[i];
        const double y = job.y[number * job.outputs + k], g = slope(job.loss, y, p);
        const T square = T(h * g * g);
        if (!(square > 0)) continue;
        T reach = 0;  // change of the prediction for a unit step
#pragma omp simd reduction(+ : reach)
        for (std::int64_t i = 0; i < n; ++i) {
            T& total = squares[dense ? i : monomial[i]];
            total += square * u[i] * u[i];
            // The smallest normal number in place of 0 keeps this finite; there u is 0 too, or its square
            // would not have vanished.
            const T rate = multiplier / std::sqrt(total > SMALLEST<T> ? total : SMALLEST<T>);
            direction[i] = penalised ? rate : rate * u[i];
            reach += rate * u[i] * u[i];
        }
        if (!(reach > 0)) continue;
        const double time = job.learning_rate * h;
        const T step = T(travel(job.loss, y, p, time * reach) / reach), shrink = T(time * job.alpha);
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) {
            T& w = weights[dense ? i : monomial[i]];
            if constexpr (penalised)
                w = u[i] != 0 ? (w + step * direction[i] * u[i]) / (1 + shrink * direction[i]) : w;
            else
                w += step * direction[i];
        }
    }
}

template <class T, bool dense, bool penalised>
void learn_rows(const OnlineJob<T>& job) {
    Expander<T, dense> expand(job);
    for (std::int64_t i = 0; i < job.count; ++i) {
        const std::int64_t row = job.order ? job.order[i] : i;
        learn_row<T, dense, penalised>(job, expand(row), row);
    }
}

template <class T, bool dense>
void predict_rows(const OnlineJob<T>& job) {
    Expander<T, dense> expand(job);
    for (std::int64_t r = 0; r < job.count; ++r) {
        const Row<T> row = expand(r);
        for (int k = 0; k < job.outputs; ++k) {
            const T* weights = job.fixed_weights + k * job.monomials;
            T p = 0;
#pragma omp simd reduction(+ : p)
            for (std::int64_t i = 0; i < row.size; ++i)
                p += weights[dense ? i : row.monomial[i]] * row.value[i];
            job.result[r * job.outputs + k] = p;
        }
    }
}

template <class T>
void learn(const OnlineJob<T>& job) {
    if (job.indptr)
        job.alpha > 0 ? learn_rows<T, false, true>(job) : learn_rows<T, false, false>(job);
    else
        job.alpha > 0 ? learn_rows<T, true, true>(job) : learn_rows<T, true, false>(job);
}

template <class T>
void predict(const OnlineJob<T>& job) {
    job.indptr ? predict_rows<T, false>(job) : predict_rows<T, true>(job);
}

}  // namespace

#define JOIN(a, b) a##b
#define NAME(prefix, variant) JOIN(prefix, variant)
extern const OnlineKernel<float> NAME(float_online_, VARIANT);
extern const OnlineKernel<double> NAME(double_online_, VARIANT);
const OnlineKernel<float> NAME(float_online_, VARIANT) = {learn<float>, predict<float>};
const OnlineKernel<double> NAME(double_online_, VARIANT) = {learn<double>, predict<double>};

}  // namespace tensormachines
