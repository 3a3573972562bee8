// Chooses, once, the copy of the compiled code that suits this machine.
#pragma once
#include <cstdlib>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
#if defined(__x86_64__) && !defined(ONE_COPY)
struct Processor {
    bool v3, v4;  // exactly what CMakeLists.txt compiles them for
};
// Asks the processor itself: the functions of compilers for this need a library that Windows does not have.
inline Processor processor() {
    unsigned a, b, c, d, saved, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return {};
    const bool fma = c & bit_FMA;
    __asm__("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));  // the registers that the system saves
    if ((saved & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    const unsigned wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
    const bool v3 = fma && (b & bit_AVX2);
    return {v3, v3 && (saved & 0xe0) == 0xe0 && (b & wanted) == wanted};
}
#endif

inline Choice choose() {
#if defined(__x86_64__) && !defined(ONE_COPY)
    const char* wish = std::getenv("TENSORMACHINES_INSTRUCTIONS");  // "baseline", "v3" or "v4"
    const std::string limit = wish ? wish : "";
    const Processor has = processor();
    // Only on request: with AVX-512, the last bit of a row's result depends on the rows next to it, and a fit
    // is hardly faster (5 % on a table of 50 columns).
    if (has.v4 && limit == "v4") return COPY(v4);
    if (has.v3 && limit != "baseline") return COPY(v3);
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
