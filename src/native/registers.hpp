// Registers of VECTOR_BYTES as values: loads, sums, transposition. Included inside the unnamed
// namespaces of kernel.cpp, sfo/sfo.cpp and peers/hadamard.cpp.

template <class T>
struct Register {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class T>
using Vec = typename Register<T>::type;
template <class T>
constexpr int LANES = VECTOR_BYTES / int(sizeof(T));

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
// A product that is rounded before it is added to anything. GCC may fuse the two, and whether it does can
// differ between two places that must find the same.
template <class V>
inline V rounded(V product) {
#if defined(__x86_64__)
    __asm__("" : "+x"(product));
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#else
    __asm__("" : "+m"(product));
#endif
    return product;
}
// Both keep a first argument that is NaN, so that an overflow is not hidden.
template <class V>
inline V largest(V a, V b) {
    return a < b ? b : a;
}
template <class V>
inline V smallest(V a, V b) {
    return a > b ? b : a;
}
// The lanes of a register in float64: added to a register of float64 sums, or to one number.
inline Vec<double> widen(Vec<double> v) { return v; }
// Lane by lane: GCC makes two whole conversions of this, and six small ones of __builtin_convertvector.
template <int... lane>
inline Vec<double> widen(Vec<float> v, std::integer_sequence<int, lane...>) {
    return Vec<double>{double(v[lane])...} + Vec<double>{double(v[lane + LANES<double>])...};
}
inline Vec<double> widen(Vec<float> v) {
    return widen(v, std::make_integer_sequence<int, LANES<double>>{});
}
template <class V>
inline double sum(V v) {
    const Vec<double> wide = widen(v);
    double total = 0;
    for (int i = 0; i < LANES<double>; ++i) total += wide[i];
    return total;
}

// `count` elements `stride` apart, followed by zeros; and the same with ones for elements.
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
template <class T, int... lane>
inline Vec<T> lane_numbers(std::integer_sequence<int, lane...>) {
    return Vec<T>{T(lane)...};
}
template <class T>
inline Vec<T> lane_numbers() {
    return lane_numbers<T>(std::make_integer_sequence<int, LANES<T>>{});
}

// own += value * from, `count` numbers: by whole registers, then by ever smaller parts of one, never past the
// end.
template <class T, int lanes>
inline void add_multiple(T* own, T value, const T* from, std::int64_t count) {
    if constexpr (lanes > 1) {
        typedef T Part __attribute__((vector_size(lanes * sizeof(T))));
        for (; count >= lanes; own += lanes, from += lanes, count -= lanes) {
            Part sum, more;
            std::memcpy(&sum, own, sizeof sum);
            std::memcpy(&more, from, sizeof more);
            sum += value * more;
            std::memcpy(own, &sum, sizeof sum);
        }
        if (count) add_multiple<T, lanes / 2>(own, value, from, count);
    } else {
        *own += value * *from;
    }
}

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
inline std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t tiles(std::int64_t n, std::int64_t largest) { return (n + largest - 1) / largest; }
// The size of all tiles but perhaps the last, when n is cut as evenly as can be into tiles of at most
// `largest`.
inline std::int64_t tile_size(std::int64_t n, std::int64_t largest) { return tiles(n, tiles(n, largest)); }
inline std::int64_t at_least(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

// n cut into as few tiles of at most `largest` as can be, whose sizes differ by one at most.
struct Tiling {
    std::int64_t count, size, larger;

    Tiling(std::int64_t n, std::int64_t largest)
        : count(at_least(1, tiles(n, largest))), size(n / count), larger(n % count) {}
    std::int64_t operator[](std::int64_t tile) const { return size + (tile < larger ? 1 : 0); }
};

// ---- transposition

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

// Exchanges, between two registers `distance` apart, the lanes that the transpose moves across that bit of
// the row number.
template <class T, int distance, int... lane>
inline void exchange(Vec<T>& low, Vec<T>& high, std::integer_sequence<int, lane...>) {
    constexpr int n = LANES<T>;
    const Vec<T> first = SHUFFLE(T, low, high, ((lane & distance) ? n + lane - distance : lane)...);
    const Vec<T> second = SHUFFLE(T, low, high, ((lane & distance) ? n + lane : lane + distance)...);
    low = first;
    high = second;
}
template <class T, int distance, int count>
inline void transpose_stages(Vec<T> (&r)[count]) {
    if constexpr (distance > 0) {
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i)
            if (!(i & distance))
                exchange<T, distance>(r[i], r[i + distance], std::make_integer_sequence<int, LANES<T>>{});
        transpose_stages<T, distance / 2>(r);
    }
}
template <class T>
inline void transpose(Vec<T> (&r)[LANES<T>]) {
    transpose_stages<T, LANES<T> / 2>(r);
}

// Half a register from each of two places.
#if defined(__clang__) || __GNUC__ >= 12
template <class T, int... lane>
inline Vec<T> load_halves(const T* low, const T* high, std::integer_sequence<int, lane...>) {
    typedef T Half __attribute__((vector_size(VECTOR_BYTES / 2)));
    Half first, second;
    std::memcpy(&first, low, sizeof first);
    std::memcpy(&second, high, sizeof second);
    return __builtin_shufflevector(first, second, lane...);
}
#else
template <class T, int... lane>
inline Vec<T> load_halves(const T* low, const T* high, std::integer_sequence<int, lane...>) {
    Vec<T> v;
    std::memcpy(&v, low, sizeof v / 2);
    std::memcpy(reinterpret_cast<char*>(&v) + sizeof v / 2, high, sizeof v / 2);
    return v;
}
#endif

// Rows (LANES of them, `stride` apart, `columns` wide) to a strip, half a register of columns at a time: the
// first stage of the transposition is then done by the loads. Where the width is not a multiple of that, the
// last step overlaps the one before it.
template <class T>
void rows_to_strip(const T* rows, std::int64_t stride, std::int64_t columns, Vec<T>* strip) {
    constexpr int n = LANES<T>, half = n / 2;
    if (columns < half) {
        for (std::int64_t j = 0; j < columns; ++j)
            for (int i = 0; i < n; ++i) strip[j][i] = rows[i * stride + j];
        return;
    }
    for (std::int64_t done = 0; done < columns; done += half) {
        const std::int64_t j = at_most(done, columns - half);
        Vec<T> r[half];
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i)
            r[i] = load_halves(rows + i * stride + j, rows + (i + half) * stride + j,
                               std::make_integer_sequence<int, n>{});
        transpose_stages<T, half / 2>(r);
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i) strip[j + i] = r[i];
    }
}
// A strip back to rows. Below LANES columns, elements move one by one.
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
