// A step of Adam, in one pass over all its vectors. Included by kernel.cpp only, inside its unnamed
// namespace.

template <class T, bool weighted, bool scaled>
AdamSums adam_stretch(std::int64_t begin, std::int64_t end, const AdamVectors<T>& vectors, const T* gradient,
                      T* point, const AdamStep<T>& step) {
    const AdamStep<T> s = step;
    T *params = vectors.params, *mean = vectors.mean, *square = vectors.square;
    const T *strength = vectors.strength, *units = vectors.units;
    T top = 0, spoilt = 0, penalty = 0;
#pragma omp simd reduction(max : top) reduction(+ : spoilt, penalty)
    for (std::int64_t i = begin; i < end; ++i) {
        const T unit = scaled ? units[i] : T(1), at = scaled ? params[i] * unit : params[i];
        const T pulled = weighted ? strength[i] * at : at;
        penalty += pulled * at;
        T g = s.scale * gradient[i] + s.alpha * pulled;
        if (scaled) g *= unit;
        const T size = g < 0 ? -g : g;
        top = size > top ? size : top;
        spoilt += g * T(0);  // NaN where it is not finite
        const T m = mean[i] + (1 - s.momentum) * (g - mean[i]);
        const T v = square[i] + (1 - s.memory) * (g * g - square[i]);
        const T moved = params[i] - s.rate * m / (std::sqrt(v * s.correction) + s.smallest);
        const T next = (moved < 0 ? -moved : moved) < s.negligible ? T(0) : moved;
        mean[i] = m;
        square[i] = v;
        params[i] = next;
        if (scaled) point[i] = next * unit;
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
        all.largest = sums.largest <= all.largest ? all.largest : sums.largest;  // NaN stays
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
