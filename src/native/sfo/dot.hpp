// Sums over a few hundred numbers in float64. Included by sfo.cpp only, inside its unnamed namespace.

using Wide = Vec<double>;
constexpr int WIDE = LANES<double>;

inline double dot(const double* a, const double* b, std::int64_t n) {
    Wide acc{};
    std::int64_t j = 0;
    for (; j + WIDE <= n; j += WIDE) acc += load(a + j) * load(b + j);
    double total = sum(acc);
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
}
// a += factor * b
inline void add(double* a, double factor, const double* b, std::int64_t n) {
    std::int64_t j = 0;
    for (; j + WIDE <= n; j += WIDE) store(a + j, load(a + j) + splat<double>(factor) * load(b + j));
    for (; j < n; ++j) a[j] += factor * b[j];
}
