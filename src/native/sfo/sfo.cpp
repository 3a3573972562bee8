// The linear algebra of the solver "sfo", compiled once for each instruction set like kernel.cpp.
#include "sfo.hpp"

#include <cmath>
#include <cstring>
#include <utility>

namespace tensormachines {
namespace {

#include "../registers.hpp"
#include "dot.hpp"
#include "passes.hpp"
#include "hessians.hpp"

}  // namespace

#define JOIN(a, b) a##b
#define NAME(prefix, variant) JOIN(prefix, variant)
extern const SfoKernel NAME(sfo_, VARIANT);
const SfoKernel NAME(sfo_, VARIANT) = {gram<float>,
                                       gram<double>,
                                       combinations<float>,
                                       combinations<double>,
                                       project<float>,
                                       project<double>,
                                       fit_work,
                                       fit,
                                       model_change,
                                       replace,
                                       newton};

}  // namespace tensormachines
