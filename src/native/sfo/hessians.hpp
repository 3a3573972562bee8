// Small dense matrices in float64: one function's Hessian, the sum of all, its factor. Included by sfo.cpp
// only, inside its unnamed namespace.

// ---- products

// C (rows, columns) += sign * A' B over `depth` rows of A and B, all of them strided by rows. A whole
// register must be readable at the end of each row of B.
struct Product {
    std::int64_t depth;
    const double* A;
    std::int64_t A_stride;
    const double* B;
    std::int64_t B_stride;
    double* C;
    std::int64_t C_stride;
    double sign;
};
// R rows of C by V registers of columns; only `lanes` of the last register count. `a` (depth, R) are the
// columns of A that belong to these rows.
template <int R, int V>
void product_tile(const Product& p, const double* a, std::int64_t row, std::int64_t column, int lanes) {
    Wide acc[R][V] = {};
    const double* b = p.B + column;
    for (std::int64_t k = 0; k < p.depth; ++k, a += R, b += p.B_stride) {
        Wide own[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) own[v] = load(b + v * WIDE);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Wide factor = splat<double>(a[r]);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) acc[r][v] += factor * own[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            double* c = p.C + (row + r) * p.C_stride + column + v * WIDE;
            const Wide change = splat<double>(p.sign) * acc[r][v];
            if (v < V - 1 || lanes == WIDE)
                store(c, load(c) + change);
            else
                for (int i = 0; i < lanes; ++i) c[i] += change[i];
        }
}
constexpr int PRODUCT_ROWS = VECTOR_BYTES == 64 ? 8 : 4, PRODUCT_REGISTERS = 2;

// All columns from `column` to `end` of R rows. What these rows need of A, a cache line for each k, is copied
// side by side: every tile reads it again.
constexpr std::int64_t PRODUCT_DEPTH = 256;
template <int R>
void product_rows(Product p, std::int64_t row, std::int64_t column, std::int64_t end) {
    double a[PRODUCT_DEPTH * R];
    const std::int64_t depth = p.depth;
    for (std::int64_t done = 0; done < depth; done += PRODUCT_DEPTH) {
        p.depth = at_most(PRODUCT_DEPTH, depth - done);
        for (std::int64_t k = 0; k < p.depth; ++k)
            for (int r = 0; r < R; ++r) a[k * R + r] = p.A[(done + k) * p.A_stride + row + r];
        std::int64_t j = column;
        for (; j + WIDE < end; j += PRODUCT_REGISTERS * WIDE)
            product_tile<R, PRODUCT_REGISTERS>(p, a, row, j, int(at_most(end - j - WIDE, WIDE)));
        if (j < end) product_tile<R, 1>(p, a, row, j, int(end - j));
        p.B += PRODUCT_DEPTH * p.B_stride;
    }
}
inline void product(const Product& p, std::int64_t rows, std::int64_t columns) {
    std::int64_t row = 0;
    for (; row + PRODUCT_ROWS <= rows; row += PRODUCT_ROWS) product_rows<PRODUCT_ROWS>(p, row, 0, columns);
    for (; row < rows; ++row) product_rows<1>(p, row, 0, columns);
}

// ---- one function

// Shares of steps, and of changes, outside the span of the vectors before them: below these, NumPy takes
// over. The limit for steps is far above the one that NumPy takes for dependent.
constexpr double SMALLEST_STEP_SHARE = 1e-3, SMALLEST_CHANGE_SHARE = 1e-8;
constexpr int MOST_SWEEPS = 30;

// Orthonormal rows Q (n, size), n / 2 steps and n / 2 changes before, with vectors = R' Q, R (n, n) upper
// triangular and 0 at first, by Gram-Schmidt done twice. `inside` holds n numbers. False where a vector
// depends on those before it.
inline bool orthonormalise(double* Q, std::int64_t n, std::int64_t size, std::int64_t stride, double* R,
                           std::int64_t R_stride, double* inside) {
    for (std::int64_t i = 0; i < n; ++i) {
        double* q = Q + i * stride;
        const double length = std::sqrt(dot(q, q, size));
        for (int round = 0; round < 2; ++round) {
            for (std::int64_t k = 0; k < i; ++k) inside[k] = dot(Q + k * stride, q, size);
            for (std::int64_t k = 0; k < i; ++k) {
                add(q, -inside[k], Q + k * stride, size);
                R[k * R_stride + i] += inside[k];
            }
        }
        const double left = std::sqrt(dot(q, q, size));
        if (!(left > length * (2 * i < n ? SMALLEST_STEP_SHARE : SMALLEST_CHANGE_SHARE))) return false;
        R[i * R_stride + i] = left;
        for (std::int64_t j = 0; j < size; ++j) q[j] /= left;
    }
    return true;
}

// The eigenvalues of a symmetric matrix A (n, n) end up on its diagonal (Jacobi's rotations), and if wanted,
// the eigenvectors in the rows of `vectors` (n, n).
inline void diagonalise(double* A, std::int64_t n, double* vectors = nullptr) {
    if (vectors)
        for (std::int64_t i = 0; i < n * n; ++i) vectors[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    const auto rotate_rows = [n](double* rows, std::int64_t i, std::int64_t j, double c, double s) {
        for (std::int64_t k = 0; k < n; ++k) {
            const double x = rows[j * n + k], y = rows[i * n + k];
            rows[j * n + k] = c * x - s * y;
            rows[i * n + k] = s * x + c * y;
        }
    };
    for (int sweep = 0; sweep < MOST_SWEEPS; ++sweep) {
        double off = 0, on = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            on += A[i * n + i] * A[i * n + i];
            for (std::int64_t j = 0; j < i; ++j) off += A[i * n + j] * A[i * n + j];
        }
        if (!(off > 1e-26 * on)) return;  // the rest changes the eigenvalues by its square
        for (std::int64_t i = 1; i < n; ++i)
            for (std::int64_t j = 0; j < i; ++j) {
                const double a = A[i * n + j];
                if (a == 0) continue;
                const double theta = 0.5 * (A[i * n + i] - A[j * n + j]) / a;
                const double t = (theta < 0 ? -1.0 : 1.0) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                rotate_rows(A, i, j, c, s);
                if (vectors) rotate_rows(vectors, i, j, c, s);
                for (std::int64_t k = 0; k < n; ++k) {
                    const double x = A[k * n + j], y = A[k * n + i];
                    A[k * n + j] = c * x - s * y;
                    A[k * n + i] = s * x + c * y;
                }
            }
    }
}

// Smallest and largest singular value of D with D S = Y, where R = [S Y] (2 n, 2 n) and S is triangular. W
// (n, stride) and square (n, n) are overwritten. Here and below, rows of up to 2 n numbers have zeros behind
// them, so that they fill whole registers.
inline void extreme_curvatures(const double* R, std::int64_t n, std::int64_t stride, double* W,
                               double* square, double* smallest, double* largest) {
    for (std::int64_t j = 0; j < n; ++j) {
        double* w = W + j * stride;
        for (std::int64_t i = 0; i < stride; ++i) w[i] = i < 2 * n ? R[i * stride + n + j] : 0;
        for (std::int64_t k = 0; k < j; ++k) add(w, -R[k * stride + j], W + k * stride, stride);
        for (std::int64_t i = 0; i < stride; ++i) w[i] /= R[j * stride + j];
    }
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j)
            square[i * n + j] = square[j * n + i] = dot(W + i * stride, W + j * stride, stride);
    diagonalise(square, n);
    double low = square[0], high = square[0];
    for (std::int64_t i = 1; i < n; ++i) {
        low = square[i * n + i] < low ? square[i * n + i] : low;
        high = square[i * n + i] > high ? square[i * n + i] : high;
    }
    *smallest = low > 0 ? std::sqrt(low) : 0;
    *largest = high > 0 ? std::sqrt(high) : 0;
}

// BFGS of H (2 n, 2 n) with the pairs in the columns of R = [S Y], oldest first. s, y, Hs hold `stride`
// numbers each, 0 at first. False where it would divide by 0.
inline bool bfgs(double* H, const double* R, std::int64_t n, std::int64_t stride, double* s, double* y,
                 double* Hs) {
    const std::int64_t m = 2 * n;
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
            s[i] = R[i * stride + j];
            y[i] = R[i * stride + n + j];
        }
        for (std::int64_t i = 0; i < stride; ++i) Hs[i] = 0;
        for (std::int64_t i = 0; i < m; ++i) add(Hs, s[i], H + i * stride, stride);
        const double sy = dot(s, y, stride), sHs = dot(s, Hs, stride);
        if (sy == 0 || sHs == 0) return false;
        for (std::int64_t i = 0; i < m; ++i) {
            add(H + i * stride, y[i] / sy, y, stride);
            add(H + i * stride, -Hs[i] / sHs, Hs, stride);
        }
    }
    return true;
}

// Eigenvalues of H (m, m), which is overwritten, that are too small become the smallest of the others, or
// `scale`; core = H - scale I. `vectors` holds m * m numbers.
inline void make_positive(double* H, std::int64_t m, double scale, double largest_ratio, double* vectors,
                          double* core, std::int64_t core_stride) {
    diagonalise(H, m, vectors);
    double largest = 0, smallest = 0;
    for (std::int64_t i = 0; i < m; ++i)
        largest = std::fabs(H[i * m + i]) > largest ? std::fabs(H[i * m + i]) : largest;
    const double limit = largest / largest_ratio;
    for (std::int64_t i = 0; i < m; ++i) {
        const double value = H[i * m + i];
        if (value > limit && (smallest == 0 || value < smallest)) smallest = value;
    }
    if (smallest == 0) smallest = scale;
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < m; ++j) core[i * core_stride + j] = 0;
    for (std::int64_t k = 0; k < m; ++k) {
        const double value = H[k * m + k] > limit ? H[k * m + k] : smallest;
        for (std::int64_t i = 0; i < m; ++i)
            add(core + i * core_stride, (value - scale) * vectors[k * m + i], vectors + k * m, m);
    }
}

// The model at x minus its value at the position. `work` holds size + n numbers.
double model_change(const Sizes& sizes, const Part& part, const double* x, double* work) {
    const std::int64_t K = sizes.size;
    double *distance = work, *inside = work + K;
    for (std::int64_t j = 0; j < K; ++j) distance[j] = x[j] - part.position[j];
    for (std::int64_t r = 0; r < part.n; ++r) inside[r] = dot(part.rows + r * sizes.stride, distance, K);
    double quadratic = part.scale * dot(distance, distance, K);
    for (std::int64_t r = 0; r < part.n; ++r)
        quadratic += inside[r] * dot(part.core + r * sizes.core_stride, inside, part.n);
    return dot(part.gradient, distance, K) + 0.5 * quadratic;
}

// ---- the sum

void mirror(double* A, std::int64_t size, std::int64_t stride) {
    constexpr std::int64_t block = 8;  // so that every cache line is written at once
    for (std::int64_t top = 0; top < size; top += block)
        for (std::int64_t left = top; left < size; left += block)
            for (std::int64_t j = left; j < at_most(left + block, size); ++j)
                for (std::int64_t i = top; i < at_most(at_most(top + block, size), j); ++i)
                    A[j * stride + i] = A[i * stride + j];
}

// Writes the rows of a part, and their products with its core times `sign`; adds its share of the gradient at
// 0 to `linear`.
inline void put_part(const Sizes& sizes, const Part& part, double sign, double* rows, double* products,
                     double* linear) {
    const std::int64_t K = sizes.size;
    for (std::int64_t j = 0; j < K; ++j)
        linear[j] += sign * (part.gradient[j] - part.scale * part.position[j]);
    for (std::int64_t r = 0; r < part.n; ++r)
        std::memcpy(rows + r * K, part.rows + r * sizes.stride, K * sizeof(double));
    for (std::int64_t i = 0; i < part.n * K; ++i) products[i] = 0;
    product({part.n, part.core, sizes.core_stride, rows, K, products, K, sign}, part.n, K);
    for (std::int64_t r = 0; r < part.n; ++r)
        add(linear, -dot(rows + r * K, part.position, K), products + r * K, K);
}

void replace(const Sizes& sizes, const Part& before, const Part& after, bool both_triangles,
             double* curvature, double* linear, double* work) {
    const std::int64_t K = sizes.size, depth = before.n + after.n;
    double *rows = work, *products = work + depth * K;
    put_part(sizes, before, -1, rows, products, linear);
    put_part(sizes, after, 1, rows + before.n * K, products + before.n * K, linear);
    const Product sum{depth, rows, K, products, K, curvature, sizes.stride, 1};
    std::int64_t row = 0;
    for (; row + PRODUCT_ROWS <= K; row += PRODUCT_ROWS) product_rows<PRODUCT_ROWS>(sum, row, row, K);
    for (; row < K; ++row) product_rows<1>(sum, row, row, K);
    if (both_triangles) mirror(curvature, K, sizes.stride);
}

// The Cholesky factor by blocks of rows: the sum over all rows above as one product, then the block itself.
bool factor(std::int64_t size, double* U) {
    const auto own = [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i) {
            double* row = U + i * size;
            if (!(row[i] > 0)) return false;
            const double inverse = 1 / std::sqrt(row[i]);
            for (std::int64_t j = i; j < size; ++j) row[j] *= inverse;
            for (std::int64_t below = i + 1; below < end; ++below)
                add(U + below * size + below, -row[below], row + below, size - below);
        }
        return true;
    };
    if (size < WIDE) return own(0, size);  // products would read past the end
    std::int64_t i = 0;
    for (; i + PRODUCT_ROWS <= size; i += PRODUCT_ROWS) {
        product_rows<PRODUCT_ROWS>({i, U, size, U, size, U, size, -1}, i, i, size);
        if (!own(i, i + PRODUCT_ROWS)) return false;
    }
    for (; i < size; ++i) {
        product_rows<1>({i, U, size, U, size, U, size, -1}, i, i, size);
        if (!own(i, i + 1)) return false;
    }
    return true;
}

bool newton(const Sizes& sizes, const double* curvature, double diagonal, const double* linear,
            const double* x, double* U, double* gradient, double* step) {
    const std::int64_t K = sizes.size;
    for (std::int64_t i = 0; i < K; ++i) {
        const double* row = curvature + i * sizes.stride;
        std::memcpy(U + i * K + i, row + i, std::size_t(K - i) * sizeof(double));
        U[i * K + i] += diagonal;
        step[i] = gradient[i] = linear[i] + dot(row, x, K) + diagonal * x[i];
    }
    if (!factor(K, U)) return false;
    for (std::int64_t i = 0; i < K; ++i) {
        step[i] /= U[i * K + i];
        add(step + i + 1, -step[i], U + i * K + i + 1, K - i - 1);
    }
    for (std::int64_t i = K - 1; i >= 0; --i)
        step[i] = (step[i] - dot(U + i * K + i + 1, step + i + 1, K - i - 1)) / U[i * K + i];
    return true;
}

// ---- one function, all together

std::int64_t fit_work(std::int64_t n) {
    const std::int64_t stride = round_up(2 * n, WIDE);
    return (2 * n + 2 * n + n + 4) * stride + n * n + 4 * n * n;
}

// `work` must be 0.
bool fit(const Sizes& sizes, std::int64_t n, const double* steps, const double* changes, double largest_ratio,
         double* rows, double* core, double* triangle, double* scale, double* work) {
    const std::int64_t K = sizes.size, m = 2 * n, stride = round_up(m, WIDE);
    double *R = work, *H = R + m * stride, *W = H + m * stride, *s = W + n * stride, *y = s + stride,
           *Hs = y + stride, *inside = Hs + stride, *square = inside + stride, *vectors = square + n * n;
    for (std::int64_t r = 0; r < n; ++r) {
        std::memcpy(rows + r * sizes.stride, steps + r * sizes.stride, K * sizeof(double));
        std::memcpy(rows + (n + r) * sizes.stride, changes + r * sizes.stride, K * sizeof(double));
    }
    if (!orthonormalise(rows, m, K, sizes.stride, R, stride, inside)) return false;
    for (std::int64_t i = 0; i < m; ++i)
        std::memcpy(triangle + i * sizes.core_stride, R + i * stride, m * sizeof(double));
    double smallest, largest;
    extreme_curvatures(R, n, stride, W, square, &smallest, &largest);
    if (!std::isfinite(largest) || largest == 0) return false;
    if (smallest < largest / largest_ratio) smallest = largest / largest_ratio;
    for (std::int64_t i = 0; i < m; ++i) H[i * stride + i] = smallest;
    if (!bfgs(H, R, n, stride, s, y, Hs)) return false;

    double trace = 0;
    for (std::int64_t i = 0; i < m; ++i) trace += std::fabs(H[i * stride + i]);
    double* shifted = R;
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < m; ++j) {
            const double h = 0.5 * (H[i * stride + j] + H[j * stride + i]), on = i == j ? 1.0 : 0.0;
            core[i * sizes.core_stride + j] = h - on * smallest;
            shifted[i * m + j] = h - on * trace / largest_ratio;
        }
    *scale = smallest;
    if (factor(m, shifted)) return true;
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < m; ++j) {
            shifted[i * m + j] = core[i * sizes.core_stride + j] + (i == j ? smallest : 0.0);
            if (!std::isfinite(shifted[i * m + j])) return false;
        }
    make_positive(shifted, m, smallest, largest_ratio, vectors, core, sizes.core_stride);
    return true;
}
