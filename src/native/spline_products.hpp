// The functions of a number times factors, and the way back of gradients. Included by kernel.cpp only, inside
// its unnamed namespace.
//
// Waves at equally spaced knots are symmetric: at knot n - 1 - i the even ones have their value at knot i,
// the odd ones its negative. So products with the lower half of the knots are enough, half of the arithmetic.

// to (rows, padded) += a (rows, depth) times factors (depth, padded)
template <class T>
void multiply(const T* a, std::int64_t rows, std::int64_t depth, const T* factors, std::int64_t factor_stride,
              std::int64_t padded, T* to, std::int64_t to_stride) {
    Prefetch none{nullptr, 0, 0};
    multiply_add<T>({a, depth, factors, factor_stride, to, to_stride}, rows, depth, padded, none);
}

// Calls change(low, high, above_low, above_high), registers that it may change, for all pairs i of knots: low
// and above_low are of rows i and upper + i, high and above_high the same of pair pairs - 1 - i. So
// above_high is of the mirror image of knot i, and above_low of that of the other.
template <class T, class Change>
void change_pairs(std::int64_t n_knots, std::int64_t padded, T* rows, Change change) {
    constexpr int n = LANES<T>;
    const std::int64_t pairs = n_knots / 2, upper = n_knots - pairs;
    for (std::int64_t i = 0; 2 * i < pairs; ++i) {
        T *first = rows + i * padded, *second = rows + (pairs - 1 - i) * padded;
        for (std::int64_t k = 0; k < padded; k += n) {
            T* const places[] = {first + k, second + k, first + upper * padded + k,
                                 second + upper * padded + k};
            Vec<T> low = load(places[0]), high = load(places[1]), above_low = load(places[2]),
                   above_high = load(places[3]);
            change(low, high, above_low, above_high);
            store(places[0], low);
            store(places[1], high);
            store(places[2], above_low);
            store(places[3], above_high);
        }
    }
}

// Factors (functions, padded) to those of the states (states, padded).
template <class T>
void spread_number(const SplineNumber<T>& number, const T* factors, std::int64_t padded, T* states) {
    const std::int64_t pairs = number.knots / 2, upper = number.knots - pairs, waves = number.waves;
    std::memset(states, 0, std::size_t(number.states * padded) * sizeof(T));
    multiply(number.odd, pairs, (waves + 1) / 2, factors, 2 * padded, padded, states + upper * padded,
             padded);
    multiply(number.even, upper, waves / 2, factors + padded, 2 * padded, padded, states, padded);
    change_pairs<T>(number.knots, padded, states,
                    [](Vec<T>& low, Vec<T>& high, Vec<T>& odd, Vec<T>& high_odd) {
                        const Vec<T> of_low = low, of_high = high, difference = high - high_odd;
                        low = of_low + odd;
                        high = of_high + high_odd;
                        high_odd = of_low - odd;
                        odd = difference;
                    });
    multiply(number.others, number.states, number.n_others, factors + waves * padded, padded, padded, states,
             padded);
    if (number.reference < 0) return;
    constexpr int n = LANES<T>;
    for (std::int64_t k = 0; k < padded; k += n) {
        const Vec<T> same = load(states + number.reference * padded + k);
        for (std::int64_t i = 0; i < number.states; ++i) {
            T* own = states + i * padded + k;
            store(own, load(own) - same);
        }
    }
}

// Adds the gradient of the factors of the states (states, padded), which is overwritten, to that of the
// factors.
template <class T>
void gather_number(const SplineNumber<T>& number, T* states, std::int64_t padded, T* factors) {
    constexpr int n = LANES<T>;
    const std::int64_t pairs = number.knots / 2, upper = number.knots - pairs, waves = number.waves;
    for (std::int64_t k = 0; number.reference >= 0 && k < padded; k += n) {
        Vec<T> sum{};
        for (std::int64_t i = 0; i < number.states; ++i) sum += load(states + i * padded + k);
        T* same = states + number.reference * padded + k;
        store(same, load(same) - sum);
    }
    multiply(number.others_transposed, number.n_others, number.states, states, padded, padded,
             factors + waves * padded, padded);
    change_pairs<T>(number.knots, padded, states,
                    [](Vec<T>& low, Vec<T>& high, Vec<T>& above_low, Vec<T>& above_high) {
                        const Vec<T> odd = low - above_high, high_odd = high - above_low;
                        low += above_high;
                        high += above_low;
                        above_low = odd;
                        above_high = high_odd;
                    });
    multiply(number.odd_transposed, (waves + 1) / 2, pairs, states + upper * padded, padded, padded, factors,
             2 * padded);
    multiply(number.even_transposed, waves / 2, upper, states, padded, padded, factors + padded, 2 * padded);
}
