// The Python module, and the bindings of the kernel and of splines. See tensormachines._model.kernel,
// spline_states and spline_basis for the contracts.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "block.hpp"
#include "instructions.hpp"
#include "predictor.hpp"
#include "spline_states.hpp"
#include "spline_tables.hpp"

namespace tensormachines {

void define_predictors(nb::module_& m);   // predictor_module.cpp
void define_minibatches(nb::module_& m);  // minibatch/minibatch_module.cpp
void define_sfo(nb::module_& m);          // sfo/sfo_module.cpp
void define_peers(nb::module_& m);        // peers/peers_module.cpp
void define_text(nb::module_& m);         // text/text_module.cpp

namespace {

// ---- the kernel

// Copies head (models, head of the layout), and checks factors (features, models * columns of the layout).
template <class T>
std::vector<T> heads_of(const Block<T>& block, const Layout& layout, const Strided<const T>& head,
                        const Array<const T, 2>& factors) {
    const int models = int(head.shape(0));
    require(has_shape(head, models, layout.head()), "head has the wrong shape");
    require(has_shape(factors, block.features(), models * layout.columns()), "factors have the wrong shape");
    std::vector<T> heads;
    for (int m = 0; m < models; ++m)
        for (std::int64_t i = 0; i < layout.head(); ++i) heads.push_back(head(m, i));
    return heads;
}

// Weighted sums over the rows of the losses, values (models), and of their gradients.
template <class T>
void value_and_gradient(const Block<T>& block, const Layout& layout, Strided<const T> head,
                        Array<const T, 2> factors, int loss, double parameter, Array<double, 1> values,
                        Strided<T> head_gradient, Array<T, 2> factor_gradient, int threads) {
    const std::vector<T> heads = heads_of(block, layout, head, factors);
    const Job<T> job = block.job({loss, parameter}, layout, int(head.shape(0)), heads.data());
    require(has_shape(values, job.models) && has_shape(head_gradient, job.models, job.head_size) &&
                has_shape(factor_gradient, block.features(), job.factor_columns),
            "a result has the wrong shape");
    nb::gil_scoped_release release;
    Totals totals(job);
    Workspace<T> space;
    Team team(useful_threads(job.rows, threads));
    block.evaluate(job, factors.data(), team, totals, factor_gradient.data(), space);
    std::copy(totals.value.begin(), totals.value.end(), values.data());
    for (int m = 0; m < job.models; ++m)
        for (std::int64_t i = 0; i < job.head_size; ++i)
            head_gradient(m, i) = T(totals.head[m * job.head_size + i]);
}

template <class T>
void evaluate_rows(const Block<T>& block, Want want, std::int64_t of_model, const Layout& layout,
                   const Strided<const T>& head, const Array<const T, 2>& factors, Array<T, 2>& result,
                   int threads) {
    const std::vector<T> heads = heads_of(block, layout, head, factors);
    Job<T> job = block.job(want, layout, int(head.shape(0)), heads.data());
    require(has_shape(result, job.rows, job.models * of_model), "result has the wrong shape");
    job.result = result.data();
    nb::gil_scoped_release release;
    Totals totals(job);
    Workspace<T> space;
    Team team(useful_threads(job.rows, threads));
    block.evaluate(job, factors.data(), team, totals, nullptr, space);
}

// result (rows, models * outputs)
template <class T>
void outputs(const Block<T>& block, const Layout& layout, Strided<const T> head, Array<const T, 2> factors,
             Array<T, 2> result, int threads) {
    evaluate_rows(block, Want::outputs, layout.outputs, layout, head, factors, result, threads);
}

// result (rows, models * sets * terms)
template <class T>
void terms(const Block<T>& block, const Layout& layout, Strided<const T> head, Array<const T, 2> factors,
           Array<T, 2> result, int threads) {
    evaluate_rows(block, Want::terms, layout.sets() * layout.terms(), layout, head, factors, result, threads);
}

template <class T>
void define_block(nb::module_& m, const char* name) {
    nb::class_<Block<T>>(m, name)
        .def("value_and_gradient", &value_and_gradient<T>, nb::arg("layout"), nb::arg("head").noconvert(),
             nb::arg("factors").noconvert(), nb::arg("loss"), nb::arg("parameter"),
             nb::arg("values").noconvert(), nb::arg("head_gradient").noconvert(),
             nb::arg("factor_gradient").noconvert(), nb::arg("threads"))
        .def("outputs", &outputs<T>, nb::arg("layout"), nb::arg("head").noconvert(),
             nb::arg("factors").noconvert(), nb::arg("result").noconvert(), nb::arg("threads"))
        .def("terms", &terms<T>, nb::arg("layout"), nb::arg("head").noconvert(),
             nb::arg("factors").noconvert(), nb::arg("result").noconvert(), nb::arg("threads"));
    // One name for both types: the type of x chooses.
    m.def(
        "block",
        [](Values<T> x, std::optional<Index> indptr, std::optional<Index> indices, std::int64_t columns,
           Optional<T> shift, Optional<T> scale, T clip, T constant, bool unit_rows, Optional<T> zero_row,
           nb::object tables, std::optional<Array<const T, 2>> y, Optional<T> weight,
           std::optional<Array<const T, 2>> offset) {
            return new Block<T>(x, indptr, indices, columns, shift, scale, clip, constant, unit_rows,
                                zero_row, tables, y, weight, offset);
        },
        nb::kw_only(), nb::arg("x").noconvert(), nb::arg("indptr").none(), nb::arg("indices").none(),
        nb::arg("columns"), nb::arg("shift").none(), nb::arg("scale").none(), nb::arg("clip"),
        nb::arg("constant"), nb::arg("unit_rows"), nb::arg("zero_row").none(), nb::arg("tables").none(),
        nb::arg("y").none(), nb::arg("weight").none(), nb::arg("offset").none());
}

// ---- splines

void define_packed_block(nb::module_& m) {
    using Numbers = Array<const std::int64_t, 1>;
    using Codes = Array<const std::uint32_t, 1>;
    m.def(
        "packed_block",
        [](Codes entries, Codes runs, Numbers first, std::array<Numbers, 3> starts, nb::object tables,
           std::optional<Array<const float, 2>> y, Optional<float> weight,
           std::optional<Array<const float, 2>> offset) {
            return new Block<float>(entries, runs, first, starts, tables, y, weight, offset);
        },
        nb::kw_only(), nb::arg("entries").noconvert(), nb::arg("runs").noconvert(),
        nb::arg("first").noconvert(), nb::arg("starts"), nb::arg("tables"), nb::arg("y").none(),
        nb::arg("weight").none(), nb::arg("offset").none());
}

template <class T>
void define_spline_tables(nb::module_& m, const char* name) {
    nb::class_<SplineTables<T>>(m, name)
        .def("add_number", &SplineTables<T>::add_number, nb::arg("state"), nb::arg("function"),
             nb::arg("knots"), nb::arg("reference"), nb::arg("even"), nb::arg("odd"), nb::arg("others"))
        .def("add_category", &SplineTables<T>::add_category, nb::arg("state"), nb::arg("function"),
             nb::arg("count"));
    m.def(
        "spline_tables",
        [](Array<const T, 1> always, std::int64_t states, T size) {
            return SplineTables<T>(always, states, size);
        },
        nb::arg("always").noconvert(), nb::arg("states"), nb::arg("size"));
}

// Writes the shares of all rows of x as CSR: indptr is (rows + 1), states and shares have room for 2 *
// columns + 1 entries per row. Every row ends with a share of 1 in the state after all others. Returns the
// number of entries.
template <class X, class T>
std::int64_t spline_shares(nb::ndarray<const X, nb::ndim<2>, nb::device::cpu> x, Array<const double, 1> knots,
                           Array<const std::int64_t, 1> first, Array<const std::int64_t, 1> reference,
                           Array<const std::uint8_t, 1> category, Array<const std::uint8_t, 1> missing,
                           Array<std::int64_t, 1> indptr, Array<std::int32_t, 1> states, Array<T, 1> shares) {
    const BoundColumns bound{knots, first, reference, category, missing};
    bound.check();
    const std::int64_t rows = std::int64_t(x.shape(0)), room = rows * (2 * bound.count() + 1);
    require(std::int64_t(x.shape(1)) == bound.count(), "x has the wrong number of columns");
    require(has_shape(indptr, rows + 1) && std::int64_t(states.size()) >= room &&
                std::int64_t(shares.size()) >= room,
            "there is not enough room for the entries");
    const SplineColumns columns = bound.view();
    const X* from = x.data();
    const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
    nb::gil_scoped_release release;
    std::int64_t entries = 0;
    indptr.data()[0] = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        entries += shares_of_row<X, T>(columns, from + row * row_stride, column_stride,
                                       states.data() + entries, shares.data() + entries);
        states.data()[entries] = std::int32_t(knots.size());
        shares.data()[entries++] = T(1);
        indptr.data()[row + 1] = entries;
    }
    return entries;
}

// Writes the packed shares of all rows of x, in pieces of `rows_of_piece`; counts are (pieces, columns).
// Returns the number of entries and of runs.
template <class X>
std::pair<std::int64_t, std::int64_t> pack_shares(
    nb::ndarray<const X, nb::ndim<2>, nb::device::cpu> x, Array<const double, 1> knots,
    Array<const std::int64_t, 1> first, Array<const std::int64_t, 1> reference,
    Array<const std::uint8_t, 1> category, Array<const std::uint8_t, 1> missing, std::int64_t rows_of_piece,
    Array<std::uint32_t, 1> entries, Array<std::uint32_t, 1> runs, Array<std::int32_t, 2> entry_counts,
    Array<std::int32_t, 2> run_counts) {
    const BoundColumns bound{knots, first, reference, category, missing};
    bound.check();
    const std::int64_t rows = std::int64_t(x.shape(0)), columns = bound.count(),
                       pieces = std::max<std::int64_t>(1, (rows + rows_of_piece - 1) / rows_of_piece);
    require(std::int64_t(x.shape(1)) == columns, "x has the wrong number of columns");
    require(rows_of_piece > 0 && rows_of_piece <= 1 << 15 && has_shape(entries, rows * columns) &&
                has_shape(entry_counts, pieces, columns) && has_shape(run_counts, pieces, columns),
            "there is not enough room for the entries");
    std::int64_t most = 0;
    for (std::int64_t j = 0; j < columns; ++j)
        most += std::min(first(j + 1) - first(j), std::min(rows, rows_of_piece));
    require(std::int64_t(runs.size()) >= pieces * most, "there is not enough room for the runs");
    const SplineColumns view = bound.view();
    const X* from = x.data();
    const std::ptrdiff_t row_stride = x.stride(0), column_stride = x.stride(1);
    nb::gil_scoped_release release;
    SharePacker packer{entries.data(), runs.data()};
    for (std::int64_t p = 0; p < pieces; ++p)
        for (std::int64_t j = 0; j < columns; ++j) {
            const std::int64_t begin = p * rows_of_piece, count = std::min(rows - begin, rows_of_piece);
            const auto [n_entries, n_runs] =
                packer.add(view, j, from + begin * row_stride + j * column_stride, row_stride, count);
            entry_counts.data()[p * columns + j] = std::int32_t(n_entries);
            run_counts.data()[p * columns + j] = std::int32_t(n_runs);
        }
    return {packer.entries - entries.data(), packer.runs - runs.data()};
}

template <class X>
void define_pack_shares(nb::module_& m) {
    m.def("pack_shares", &pack_shares<X>, nb::arg("x").noconvert(), nb::arg("knots").noconvert(),
          nb::arg("first").noconvert(), nb::arg("reference").noconvert(), nb::arg("category").noconvert(),
          nb::arg("missing").noconvert(), nb::arg("rows_of_piece"), nb::arg("entries").noconvert(),
          nb::arg("runs").noconvert(), nb::arg("entry_counts").noconvert(),
          nb::arg("run_counts").noconvert());
}

template <class X, class T>
void define_spline_shares(nb::module_& m) {
    m.def("spline_shares", &spline_shares<X, T>, nb::arg("x").noconvert(), nb::arg("knots").noconvert(),
          nb::arg("first").noconvert(), nb::arg("reference").noconvert(), nb::arg("category").noconvert(),
          nb::arg("missing").noconvert(), nb::arg("indptr").noconvert(), nb::arg("states").noconvert(),
          nb::arg("shares").noconvert());
}

}  // namespace
}  // namespace tensormachines

NB_MODULE(_native, m) {
    using namespace tensormachines;
    // Models that daemon threads or other modules hold at exit are no leaks, but nanobind would name them.
    nb::set_leak_warnings(false);
    m.def("instructions", [] { return std::string(chosen().name); });
    nb::class_<Layout>(m, "Layout")
        .def(nb::init<int, int, int, int, bool>(), nb::arg("code"), nb::arg("degree"), nb::arg("rank"),
             nb::arg("outputs"), nb::arg("share"));
    define_spline_tables<float>(m, "FloatSplineTables");
    define_spline_tables<double>(m, "DoubleSplineTables");
    define_block<float>(m, "FloatBlock");
    define_block<double>(m, "DoubleBlock");
    define_spline_shares<float, float>(m);
    define_spline_shares<float, double>(m);
    define_spline_shares<double, float>(m);
    define_spline_shares<double, double>(m);
    define_packed_block(m);
    define_pack_shares<float>(m);
    define_pack_shares<double>(m);
    define_predictors(m);
    define_minibatches(m);
    define_sfo(m);
    define_peers(m);
    define_text(m);
}
