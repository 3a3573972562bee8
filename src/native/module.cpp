// The Python module: turns arrays into a Job, chooses the instruction set once, and shares the rows among threads so that the result is
// the same, to the bit, for every number of them. Threads live as long as one call: no pool to lose in a fork, nothing that spins.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "kernel.hpp"

namespace nb = nanobind;

namespace tensormachines {

#define DECLARE(variant)                           \
    extern const Kernel<float> float_kernel_##variant; \
    extern const Kernel<double> double_kernel_##variant;
DECLARE(baseline)
#if defined(__x86_64__)
DECLARE(v3)
DECLARE(v4)
#endif

namespace {

struct Choice {
    const char* name;
    const Kernel<float>* single_precision;
    const Kernel<double>* double_precision;
};

Choice choose() {
#if defined(__x86_64__)
    const char* wish = std::getenv("TENSORMACHINES_INSTRUCTIONS");  // for tests: "baseline", "v3"
    const std::string limit = wish ? wish : "";
    // Exactly what CMakeLists.txt compiles them for.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (v4 && limit != "v3" && limit != "baseline") return {"v4", &float_kernel_v4, &double_kernel_v4};
    if (v3 && limit != "baseline") return {"v3", &float_kernel_v3, &double_kernel_v3};
#endif
    return {"baseline", &float_kernel_baseline, &double_kernel_baseline};
}

const Choice& chosen() {
    static const Choice choice = choose();
    return choice;
}
template <class T>
const Kernel<T>& kernel() {
    if constexpr (sizeof(T) == 4)
        return *chosen().single_precision;
    else
        return *chosen().double_precision;
}

struct Free {
    void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;
Memory allocate(std::size_t bytes) {
    void* p = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) throw std::bad_alloc();
    return Memory(p);
}

// Runs body(thread number) on up to `threads` threads, this one among them. Where the system refuses some of them, fewer do the work:
// prepare(number of threads) is called when that number is known, before any body.
template <class Prepare, class Body>
void run_threads(int threads, Prepare prepare, Body body) {
    std::vector<std::thread> others;
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, wanted = true;
    auto wait_and_run = [&](int t) {
        {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return open; });
        }
        if (wanted) body(t);
    };
    auto open_gate = [&] {
        {
            std::lock_guard<std::mutex> lock(mutex);
            open = true;
        }
        changed.notify_all();
    };
    try {
        others.reserve(threads);
        try {
            for (int t = 1; t < threads; ++t) others.emplace_back(wait_and_run, t);
        } catch (const std::system_error&) {
        }
        prepare(int(others.size()) + 1);
    } catch (...) {
        wanted = false;
        open_gate();
        for (auto& other : others) other.join();
        throw;
    }
    open_gate();
    body(0);
    for (auto& other : others) other.join();
}

// Lets chunk numbers through one at a time, in order.
class Turn {
    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t next_ = 0;

public:
    void wait_for(std::int64_t chunk) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return next_ == chunk; });
    }
    void pass() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            ++next_;
        }
        changed_.notify_all();
    }
};

class Barrier {
    std::mutex mutex_;
    std::condition_variable changed_;
    const int count_;
    int waiting_ = 0;
    long round_ = 0;

public:
    explicit Barrier(int count) : count_(count) {}
    void wait() {
        if (count_ == 1) return;
        std::unique_lock<std::mutex> lock(mutex_);
        const long mine = round_;
        if (++waiting_ == count_) {
            waiting_ = 0;
            ++round_;
            changed_.notify_all();
        } else {
            changed_.wait(lock, [&] { return round_ != mine; });
        }
    }
};

struct Totals {
    std::vector<double> value, bias;
    template <class T>
    explicit Totals(const Job<T>& job) : value(job.models), bias(job.models * job.outputs) {}
    Sums sums() { return {value.data(), bias.data()}; }
    void operator+=(const Totals& other) {
        for (std::size_t i = 0; i < value.size(); ++i) value[i] += other.value[i];
        for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += other.bias[i];
    }
};

// Rows are cut into chunks whose size depends on the data alone; partial sums are added in the order of the chunks.
constexpr std::int64_t LARGEST_CHUNK = 16384, FEWEST_CHUNKS = 8, SMALLEST_CHUNK = 512;

template <class T>
void run_dense(const Job<T>& job, int threads, Totals& totals, T* gradient) {
    const std::int64_t chunk = std::clamp(job.rows / FEWEST_CHUNKS + 1, SMALLEST_CHUNK, LARGEST_CHUNK);
    const std::int64_t chunks = (job.rows + chunk - 1) / chunk;
    threads = int(std::max<std::int64_t>(1, std::min<std::int64_t>(threads, chunks)));
    const bool with_gradient = job.want == Want::gradient;
    const Memory packed = allocate(kernel<T>().packed_bytes(job));
    kernel<T>().pack(job, packed.get());
    std::vector<double> total(with_gradient ? job.factor_columns * job.width : 0);
    std::vector<Memory> scratch;
    std::vector<Totals> parts;
    std::atomic<std::int64_t> claimed{0};
    Turn turn;
    auto prepare = [&](int count) {
        for (int t = 0; t < count; ++t) scratch.push_back(allocate(kernel<T>().scratch_bytes(job)));
        parts.assign(count, Totals(job));
    };
    run_threads(threads, prepare, [&](int t) {  // nothing in here allocates or throws: a thread that ended would keep the others waiting
        Totals& part = parts[t];
        for (std::int64_t c; (c = claimed++) < chunks;) {
            std::fill(part.value.begin(), part.value.end(), 0.0);
            std::fill(part.bias.begin(), part.bias.end(), 0.0);
            kernel<T>().dense(job, packed.get(), scratch[t].get(), c * chunk, std::min(job.rows, (c + 1) * chunk), part.sums());
            if (!with_gradient) continue;
            turn.wait_for(c);
            totals += part;
            kernel<T>().add_gradient(job, scratch[t].get(), total.data());
            turn.pass();
        }
    });
    if (with_gradient)
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < job.factor_columns; ++k) gradient[j * job.factor_columns + k] = T(total[k * job.width + j]);
}

constexpr std::int64_t SPARSE_BLOCK = 2048, SPARSE_PIECE = 128;  // rows
constexpr std::int64_t SAMPLED_ENTRIES = 4096, OFTEN = 4;         // times that a column is in the sample
constexpr std::int64_t SMALL_GRADIENT = 1 << 16;                  // entries

// Columns of a sample of the entries, in order.
template <class T>
std::vector<std::int64_t> sample_columns(const Job<T>& job) {
    std::vector<std::int64_t> sample;
    const std::int64_t entries = job.indptr32 ? job.indptr32[job.rows] : job.indptr64[job.rows];
    for (std::int64_t e = 0; e < entries; e += entries / SAMPLED_ENTRIES + 1) sample.push_back(job.indices32 ? job.indices32[e] : job.indices64[e]);
    std::sort(sample.begin(), sample.end());
    return sample;
}

// Column borders that give every thread about as many entries.
std::vector<std::int64_t> column_borders(const std::vector<std::int64_t>& sample, std::int64_t width, int threads) {
    std::vector<std::int64_t> borders{0};
    for (int t = 1; t < threads; ++t) borders.push_back(sample.empty() ? width : sample[sample.size() * t / threads]);
    borders.push_back(width);
    return borders;
}

// Columns whose gradient is moved into a float64 total after every block: all of them if that is cheap, else those that many rows have.
// The others add up few numbers, for which float32 is enough, and nothing as large as the gradient is needed beside it.
template <class T>
std::vector<std::int64_t> totalled_columns(const Job<T>& job, const std::vector<std::int64_t>& sample) {
    std::vector<std::int64_t> columns;
    if (sizeof(T) == 8 || job.want != Want::gradient) return columns;
    if (job.width * job.factor_columns <= SMALL_GRADIENT) {
        for (std::int64_t j = 0; j < job.width; ++j) columns.push_back(j);
        return columns;
    }
    for (std::size_t i = 0, next; i < sample.size(); i = next) {
        for (next = i; next < sample.size() && sample[next] == sample[i]; ++next) {}
        if (std::int64_t(next - i) >= OFTEN) columns.push_back(sample[i]);
    }
    return columns;
}

// Each block of rows is shared among the threads twice: by rows for the slopes, by columns for the gradient. The gradient of a column is
// thus always added up by one thread, in the order of the rows, straight into its place.
template <class T>
void run_sparse(const Job<T>& job, int threads, Totals& totals, T* gradient) {
    const std::int64_t columns = job.factor_columns;
    const std::int64_t blocks = (job.rows + SPARSE_BLOCK - 1) / SPARSE_BLOCK, pieces = SPARSE_BLOCK / SPARSE_PIECE;
    threads = int(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(1, job.rows / SPARSE_PIECE)));
    const bool with_gradient = job.want == Want::gradient;

    std::vector<double> wide_offset(columns), base(columns);
    if (job.zero_row)
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < columns; ++k) wide_offset[k] += double(job.zero_row[j]) * double(job.factors[j * columns + k]);
    const std::vector<T> offset(wide_offset.begin(), wide_offset.end());
    const Memory slopes = allocate(with_gradient ? SPARSE_BLOCK * columns * sizeof(T) : 0);
    std::vector<Totals> part(pieces, Totals(job));
    std::vector<std::vector<double>> base_part(pieces, std::vector<double>(columns));
    const std::vector<std::int64_t> sample = sample_columns(job), totalled = totalled_columns(job, sample);
    std::vector<double> total(totalled.size() * columns);
    std::vector<Memory> scratch;
    std::vector<std::int64_t> borders;
    std::atomic<std::int64_t> claimed{0};
    std::optional<Barrier> barrier;
    int started = 0;
    auto prepare = [&](int count) {
        for (int t = 0; t < count; ++t) scratch.push_back(allocate(kernel<T>().scratch_bytes(job)));
        borders = column_borders(sample, job.width, count);
        barrier.emplace(count);
        started = count;
    };

    run_threads(threads, prepare, [&](int t) {
        const std::int64_t first = borders[t], last = borders[t + 1];
        if (with_gradient) std::fill(gradient + first * columns, gradient + last * columns, T(0));
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::int64_t start = b * SPARSE_BLOCK, stop = std::min(job.rows, start + SPARSE_BLOCK);
            // Every block uses up `pieces` numbers that are worth something, and one for each thread that is told there are no more.
            const std::int64_t before = b * (pieces + started);
            for (std::int64_t p; (p = claimed++ - before) < pieces;) {
                const std::int64_t row = start + p * SPARSE_PIECE;
                T* own = static_cast<T*>(slopes.get()) + p * SPARSE_PIECE * columns;
                if (row < stop)
                    kernel<T>().sparse_rows(job, offset.data(), scratch[t].get(), row, std::min(stop, row + SPARSE_PIECE), own,
                                            base_part[p].data(), part[p].sums());
            }
            barrier->wait();
            if (!with_gradient) continue;
            kernel<T>().sparse_columns(job, start, stop, first, last, static_cast<const T*>(slopes.get()), gradient);
            for (std::size_t h = 0; h < totalled.size(); ++h)
                if (totalled[h] >= first && totalled[h] < last)
                    for (std::int64_t k = 0; k < columns; ++k) {
                        total[h * columns + k] += double(gradient[totalled[h] * columns + k]);
                        gradient[totalled[h] * columns + k] = T(0);
                    }
            barrier->wait();
        }
    });
    for (std::int64_t p = 0; p < pieces; ++p) {
        totals += part[p];
        for (std::int64_t k = 0; k < columns; ++k) base[k] += base_part[p][k];
    }
    if (!with_gradient) return;
    for (std::size_t h = 0; h < totalled.size(); ++h)
        for (std::int64_t k = 0; k < columns; ++k) gradient[totalled[h] * columns + k] = T(total[h * columns + k]);
    if (job.zero_row)
        for (std::int64_t j = 0; j < job.width; ++j)
            for (std::int64_t k = 0; k < columns; ++k)
                gradient[j * columns + k] = T(double(gradient[j * columns + k]) + double(job.zero_row[j]) * base[k]);
}

// ------------------------------------------------------------------------------------------------------------------- arrays

template <class T>
using Values = nb::ndarray<const T, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Sum = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
void read_rows(Job<T>& job, const Values<T>& x, const std::optional<Whole>& indptr, const std::optional<Whole>& indices, std::int64_t columns) {
    job.x = x.data();
    job.columns = columns;
    if (x.ndim() == 2) {
        job.rows = std::int64_t(x.shape(0));
        job.row_stride = x.stride(0);
        job.column_stride = x.stride(1);
        return require(std::int64_t(x.shape(1)) == columns, "x has the wrong number of columns");
    }
    require(x.ndim() == 1 && indptr && indices && indptr->size() > 0, "x must be a matrix, or the values of a CSR matrix");
    require(indptr->dtype() == indices->dtype(), "indptr and indices must have the same type");
    require(x.size() == indices->size(), "x and indices must have the same length");
    job.rows = std::int64_t(indptr->size()) - 1;
    if (indptr->dtype() == nb::dtype<std::int32_t>()) {
        job.indptr32 = static_cast<const std::int32_t*>(indptr->data());
        job.indices32 = static_cast<const std::int32_t*>(indices->data());
        require(job.indptr32[job.rows] <= std::int64_t(x.size()), "indptr points past the end");
    } else {
        require(indptr->dtype() == nb::dtype<std::int64_t>(), "indptr must be int32 or int64");
        job.indptr64 = static_cast<const std::int64_t*>(indptr->data());
        job.indices64 = static_cast<const std::int64_t*>(indices->data());
        require(job.indptr64[job.rows] <= std::int64_t(x.size()), "indptr points past the end");
    }
}

// The only entry: see tensormachines._kernel for the contract.
template <class T>
void evaluate(int want, Values<T> x, std::optional<Whole> indptr, std::optional<Whole> indices, std::int64_t columns,
              std::optional<Vector<T>> shift, std::optional<Vector<T>> scale, T clip, T constant, bool unit_rows,
              std::optional<Vector<T>> zero_row, Vector<T> bias, Matrix<T> factors, int degree, int rank, int outputs, int models, int loss,
              std::optional<Matrix<T>> y, std::optional<Vector<T>> weight, Output<T> result, Sum value, Sum bias_gradient, int threads) {
    Job<T> job{};
    read_rows(job, x, indptr, indices, columns);
    job.basis = {shift ? shift->data() : nullptr, scale ? scale->data() : nullptr, clip, constant, unit_rows};
    job.zero_row = zero_row ? zero_row->data() : nullptr;
    job.width = columns + (constant != T(0) ? 1 : 0);
    job.degree = degree;
    job.rank = rank;
    job.outputs = outputs;
    job.models = models;
    job.projections = 1 + std::int64_t(rank) * (std::int64_t(degree) * (degree + 1) / 2 - 1);
    job.factor_columns = job.projections * outputs * models;
    job.factors = factors.data();
    job.bias = bias.data();
    job.want = Want(want);
    job.loss = Loss(loss);
    job.y = y ? y->data() : nullptr;
    job.weight = weight ? weight->data() : nullptr;

    const std::int64_t heads = std::int64_t(models) * outputs, targets = job.loss == Loss::squared ? outputs : 1;
    require(!shift == !scale && (!shift || (std::int64_t(shift->size()) == columns && std::int64_t(scale->size()) == columns)),
            "shift and scale must have one entry a column");
    require(!zero_row || std::int64_t(zero_row->size()) == job.width, "zero_row has the wrong length");
    require(std::int64_t(factors.shape(0)) == job.width && std::int64_t(factors.shape(1)) == job.factor_columns, "factors have the wrong shape");
    require(std::int64_t(bias.size()) == heads, "bias has the wrong length");
    if (job.want == Want::gradient) {
        require(y && std::int64_t(y->shape(0)) == job.rows && std::int64_t(y->shape(1)) == targets, "y has the wrong shape");
        require(!weight || std::int64_t(weight->size()) == job.rows, "weight has the wrong length");
        require(std::int64_t(value.size()) == models && std::int64_t(bias_gradient.size()) == heads, "the sums have the wrong length");
        require(std::int64_t(result.shape(0)) == job.width && std::int64_t(result.shape(1)) == job.factor_columns, "result has the wrong shape");
    } else {
        const std::int64_t each = job.want == Want::outputs ? heads : heads * (degree - 1) * rank;
        require(std::int64_t(result.shape(0)) == job.rows && std::int64_t(result.shape(1)) == each, "result has the wrong shape");
        job.result = result.data();
    }

    nb::gil_scoped_release release;
    Totals totals(job);
    if (x.ndim() == 2)
        run_dense(job, threads, totals, result.data());
    else
        run_sparse(job, threads, totals, result.data());
    if (job.want != Want::gradient) return;
    std::copy(totals.value.begin(), totals.value.end(), value.data());
    std::copy(totals.bias.begin(), totals.bias.end(), bias_gradient.data());
}

template <class T>
void define(nb::module_& m) {
    m.def("evaluate", &evaluate<T>, nb::arg("want"), nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
          nb::arg("columns"), nb::arg("shift").none(), nb::arg("scale").none(), nb::arg("clip"), nb::arg("constant"), nb::arg("unit_rows"),
          nb::arg("zero_row").none(), nb::arg("bias").noconvert(), nb::arg("factors").noconvert(), nb::arg("degree"), nb::arg("rank"),
          nb::arg("outputs"), nb::arg("models"), nb::arg("loss"), nb::arg("y").none(), nb::arg("weight").none(),
          nb::arg("result").noconvert(), nb::arg("value").noconvert(), nb::arg("bias_gradient").noconvert(), nb::arg("threads"));
}

}  // namespace
}  // namespace tensormachines

NB_MODULE(_native, m) {
    m.def("instructions", [] { return std::string(tensormachines::chosen().name); });
    tensormachines::define<float>(m);
    tensormachines::define<double>(m);
}
