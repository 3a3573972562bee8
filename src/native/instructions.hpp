// Which copy of the kernels and of the algebra this machine can run; chosen once.
#pragma once
#include <cstdlib>
#include <string>

#include "algebra.hpp"
#include "kernel.hpp"
#include "online.hpp"

namespace tensormachines {

#define DECLARE(variant)                               \
    extern const Kernel<float> float_kernel_##variant; \
    extern const Kernel<double> double_kernel_##variant; \
    extern const Algebra algebra_##variant;            \
    extern const OnlineKernel<float> float_online_##variant; \
    extern const OnlineKernel<double> double_online_##variant;
DECLARE(baseline)
#if defined(__x86_64__)
DECLARE(v3)
DECLARE(v4)
#endif

struct Choice {
    const char* name;
    const Kernel<float>* single_precision;
    const Kernel<double>* double_precision;
    const Algebra* algebra;
    const OnlineKernel<float>* single_online;
    const OnlineKernel<double>* double_online;
};

inline Choice choose() {
#if defined(__x86_64__)
    const char* wish = std::getenv("TENSORMACHINES_INSTRUCTIONS");  // for tests: "baseline", "v3"
    const std::string limit = wish ? wish : "";
    // Exactly what CMakeLists.txt compiles them for.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (v4 && limit != "v3" && limit != "baseline") return {"v4", &float_kernel_v4, &double_kernel_v4, &algebra_v4, &float_online_v4, &double_online_v4};
    if (v3 && limit != "baseline") return {"v3", &float_kernel_v3, &double_kernel_v3, &algebra_v3, &float_online_v3, &double_online_v3};
#endif
    return {"baseline", &float_kernel_baseline, &double_kernel_baseline, &algebra_baseline, &float_online_baseline, &double_online_baseline};
}

inline const Choice& chosen() {
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

}  // namespace tensormachines
