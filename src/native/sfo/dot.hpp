// Sums over a few hundred numbers in float64. Included by sfo.cpp only, inside its unnamed namespace.

using Wide = Vec<double>;
constexpr int WIDE = LANES<double>;

inline double dot(const double* a, const double* b, std::int64_t n) {
    Wide acc[4] = {};  // four, as each sum waits for the one before it
    std::int64_t j = 0;
    for (; j + 4 * WIDE <= n; j += 4 * WIDE)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) acc[k] += load(a + j + k * WIDE) * load(b + j + k * WIDE);
    for (; j + WIDE <= n; j += WIDE) acc[0] += load(a + j) * load(b + j);
    double total = sum((acc[0] + acc[1]) + (acc[2] + acc[3]));
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
}
// a += factor * b
inline void add(double* a, double factor, const double* b, std::int64_t n) {
    std::int64_t j = 0;
    for (; j + WIDE <= n; j += WIDE) store(a + j, load(a + j) + splat<double>(factor) * load(b + j));
    for (; j < n; ++j) a[j] += factor * b[j];
}
