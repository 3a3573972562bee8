// Chooses, once, the copy of the compiled code that suits this machine.
#pragma once
#include <cstdlib>
#include <string>

#include "kernel.hpp"
#include "peers/hadamard.hpp"
#include "peers/online.hpp"
#include "sfo/sfo.hpp"

namespace tensormachines {

#define DECLARE(variant)                                     \
    extern const Kernel<float> float_kernel_##variant;       \
    extern const Kernel<double> double_kernel_##variant;     \
    extern const SfoKernel sfo_##variant;                    \
    extern const Hadamard hadamard_##variant;                \
    extern const OnlineKernel<float> float_online_##variant; \
    extern const OnlineKernel<double> double_online_##variant;
DECLARE(baseline)
#if defined(__x86_64__) && !defined(ONE_COPY)
DECLARE(v3)
DECLARE(v4)
#endif

struct Choice {
    const char* name;
    const Kernel<float>* single_precision;
    const Kernel<double>* double_precision;
    const SfoKernel* sfo;
    const Hadamard* hadamard;
    const OnlineKernel<float>* single_online;
    const OnlineKernel<double>* double_online;
};

#define COPY(variant)                                                                                     \
    Choice {                                                                                              \
        #variant, &float_kernel_##variant, &double_kernel_##variant, &sfo_##variant, &hadamard_##variant, \
            &float_online_##variant, &double_online_##variant                                             \
    }
inline Choice choose() {
#if defined(__x86_64__) && !defined(ONE_COPY)
    const char* wish = std::getenv("TENSORMACHINES_INSTRUCTIONS");  // "baseline", "v3" or "v4"
    const std::string limit = wish ? wish : "";
    // Exactly what CMakeLists.txt compiles them for.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
    // Only on request: with AVX-512, the last bit of a row's result depends on the rows next to it, and a fit
    // is hardly faster (5 % on a table of 50 columns).
    if (v4 && limit == "v4") return COPY(v4);
    if (v3 && limit != "baseline") return COPY(v3);
#endif
    return COPY(baseline);
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
