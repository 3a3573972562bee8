// Value and gradient of a Tensor Machine in one pass over the rows. This file is compiled once for each
// instruction set; VARIANT names the copy and VECTOR_BYTES gives the register width.
//
// Rows are handled in strips of LANES of them: a strip stores each of its columns as one register, so that
// products, losses and slopes are plain arithmetic on whole registers.
#include "kernel.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace tensormachines {
namespace {

#include "registers.hpp"
// registers.hpp knows neither model nor data; each file uses those above it.
#include "losses.hpp"
#include "dense.hpp"
#include "sparse.hpp"
#include "packed_rows.hpp"
#include "anova.hpp"
#include "spline_products.hpp"
#include "prediction.hpp"
#include "minibatch/adam.hpp"

template <class T>
constexpr Kernel<T> kernel{packed_bytes<T>,   pack<T>,           scratch_bytes<T>,  dense<T>,
                           add_gradient<T>,   sparse_rows<T>,    sparse_columns<T>, packed_forward<T>,
                           packed_rows<T>,    packed_backward<T>, anova_stride<T>,  anova_scratch_bytes<T>,
                           anova_rows<T>,     anova_columns<T>,  LANES<T>,          spread_number<T>,
                           gather_number<T>,  prediction_bytes<T>, predict<T>,      adam_step<T>,
                           adam_rows<T>};

}  // namespace

#define JOIN(a, b) a##b
#define NAME(prefix, variant) JOIN(prefix, variant)
extern const Kernel<float> NAME(float_kernel_, VARIANT);
extern const Kernel<double> NAME(double_kernel_, VARIANT);
const Kernel<float> NAME(float_kernel_, VARIANT) = kernel<float>;
const Kernel<double> NAME(double_kernel_, VARIANT) = kernel<double>;

}  // namespace tensormachines
