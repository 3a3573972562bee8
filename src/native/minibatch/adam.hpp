// A step of Adam, in one pass over all its vectors. Included by kernel.cpp only, inside its unnamed
// namespace.

// Moves one param; returns its gradient, and adds to the penalty.
template <class T, bool weighted, bool scaled>
inline T adam_param(std::int64_t i, const AdamVectors<T>& vectors, T gradient, T* point, const AdamStep<T>& s,
                    T& penalty) {
    const T param = vectors.params[i], unit = scaled ? vectors.units[i] : T(1),
            at = scaled ? param * unit : param;
    const T pulled = weighted ? vectors.strength[i] * at : at;
    penalty += pulled * at;
    T g = s.scale * gradient + s.alpha * pulled;
    if (scaled) g *= unit;
    const T m = vectors.mean[i] + (1 - s.momentum) * (g - vectors.mean[i]);
    const T v = vectors.square[i] + (1 - s.memory) * (g * g - vectors.square[i]);
    const T moved = param - s.rate * m / (std::sqrt(v * s.correction) + s.smallest);
    const T next = (moved < 0 ? -moved : moved) < s.negligible ? T(0) : moved;
    vectors.mean[i] = m;
    vectors.square[i] = v;
    vectors.params[i] = next;
    if (scaled) point[i] = next * unit;
    return g;
}

template <class T, bool weighted, bool scaled>
AdamSums adam_stretch(std::int64_t begin, std::int64_t end, const AdamVectors<T>& vectors, const T* gradient,
                      T* point, const AdamStep<T>& step) {
    const AdamVectors<T> v = vectors;
    const AdamStep<T> s = step;
    T top = 0, spoilt = 0, penalty = 0;
#pragma omp simd reduction(max : top) reduction(+ : spoilt, penalty)
    for (std::int64_t i = begin; i < end; ++i) {
        const T g = adam_param<T, weighted, scaled>(i, v, gradient[i], point, s, penalty);
        const T size = g < 0 ? -g : g;
        top = size > top ? size : top;
        spoilt += g * T(0);  // NaN where it is not finite
    }
    return {double(penalty), double(top + spoilt)};
}

template <class T, bool weighted, bool scaled>
AdamSums adam_stretches(std::int64_t size, const AdamVectors<T>& vectors, const T* gradient, T* point,
                        const AdamStep<T>& step) {
    constexpr std::int64_t at_once = 4096;  // whose sum may be of type T
    AdamSums all{0, 0};
    for (std::int64_t start = 0; start < size; start += at_once) {
        const AdamSums sums = adam_stretch<T, weighted, scaled>(start, at_most(start + at_once, size),
                                                                vectors, gradient, point, step);
        all.penalty += sums.penalty;
        all.largest = larger(all.largest, sums.largest);
    }
    return all;
}

template <class T>
AdamSums adam_step(std::int64_t size, const AdamVectors<T>& vectors, const T* gradient, T* point,
                   const AdamStep<T>& step) {
    if (vectors.units)
        return vectors.strength ? adam_stretches<T, true, true>(size, vectors, gradient, point, step)
                                : adam_stretches<T, false, true>(size, vectors, gradient, point, step);
    return vectors.strength ? adam_stretches<T, true, false>(size, vectors, gradient, point, step)
                            : adam_stretches<T, false, false>(size, vectors, gradient, point, step);
}

// Columns have sums of their own, at most `at_once` of them at a time: so these do not depend on how many
// other columns there are.
template <class T, bool weighted, bool scaled>
double adam_matrix(std::int64_t rows, std::int64_t columns, const AdamVectors<T>& vectors, const T* gradient,
                   T* point, const AdamStep<T>& step, T* penalties) {
    constexpr std::int64_t at_once = 64;
    const AdamVectors<T> v = vectors;
    const AdamStep<T> s = step;
    double largest = 0;
    for (std::int64_t first = 0; first < columns; first += at_once) {
        const std::int64_t count = at_most(at_once, columns - first);
        T top[at_once] = {}, spoilt[at_once] = {};
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t begin = row * columns + first;
#pragma omp simd
            for (std::int64_t k = 0; k < count; ++k) {
                const T g = adam_param<T, weighted, scaled>(begin + k, v, gradient[begin + k], point, s,
                                                            penalties[first + k]);
                const T size = g < 0 ? -g : g;
                top[k] = size > top[k] ? size : top[k];
                spoilt[k] += g * T(0);
            }
        }
        for (std::int64_t k = 0; k < count; ++k) largest = larger(largest, double(top[k] + spoilt[k]));
    }
    return largest;
}

template <class T>
double adam_rows(std::int64_t rows, std::int64_t columns, const AdamVectors<T>& vectors, const T* gradient,
                 T* point, const AdamStep<T>& step, T* penalties) {
    const auto scaled = vectors.strength ? adam_matrix<T, true, true> : adam_matrix<T, false, true>,
               unscaled = vectors.strength ? adam_matrix<T, true, false> : adam_matrix<T, false, false>;
    return (vectors.units ? scaled : unscaled)(rows, columns, vectors, gradient, point, step, penalties);
}
