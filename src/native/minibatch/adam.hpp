// What a step of Adam does to its vectors, in one pass each. Included by kernel.cpp only, inside its unnamed
// namespace.

// gradient = scale * gradient + alpha * strength * params; returns the sum of strength * params^2. A null
// strength is 1.
template <class T>
double penalise(std::int64_t size, const T* params, const T* strength, T* gradient, T scale, T alpha) {
    constexpr std::int64_t at_once = 4096;  // whose sum may be of type T
    double total = 0;
    for (std::int64_t start = 0; start < size; start += at_once) {
        const std::int64_t end = at_most(start + at_once, size);
        T sum = 0;
        if (strength) {
#pragma omp simd reduction(+ : sum)
            for (std::int64_t i = start; i < end; ++i) {
                const T weighted = strength[i] * params[i];
                gradient[i] = scale * gradient[i] + alpha * weighted;
                sum += weighted * params[i];
            }
        } else {
#pragma omp simd reduction(+ : sum)
            for (std::int64_t i = start; i < end; ++i) {
                gradient[i] = scale * gradient[i] + alpha * params[i];
                sum += params[i] * params[i];
            }
        }
        total += double(sum);
    }
    return total;
}

// The largest absolute value; not finite if one of them is not.
template <class T>
T largest_gradient(std::int64_t size, const T* gradient) {
    T top = 0, sum = 0;
#pragma omp simd reduction(max : top) reduction(+ : sum)
    for (std::int64_t i = 0; i < size; ++i) {
        const T value = gradient[i] < 0 ? -gradient[i] : gradient[i];
        top = value > top ? value : top;
        sum += gradient[i] * T(0);  // NaN where it is not finite
    }
    return top + sum;
}

template <class T>
void adam_step(std::int64_t size, T* params, const T* gradient, T* mean, T* square, const AdamStep<T>& step) {
    const AdamStep<T> s = step;
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
        const T g = gradient[i];
        const T m = mean[i] + (1 - s.momentum) * (g - mean[i]);
        const T v = square[i] + (1 - s.memory) * (g * g - square[i]);
        const T moved = params[i] - s.rate * m / (std::sqrt(v * s.correction) + s.smallest);
        mean[i] = m;
        square[i] = v;
        params[i] = (moved < 0 ? -moved : moved) < s.negligible ? T(0) : moved;
    }
}
