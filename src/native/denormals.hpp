// Denormal numbers are as good as 0, and a hundred times slower: a penalty makes many of them.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace tensormachines {

// As long as one lives, this thread takes them for 0.
class FlushDenormals {
#if defined(__SSE__)
    const unsigned before_ = _mm_getcsr();

public:
    FlushDenormals() { _mm_setcsr(before_ | 0x8040); }  // results, and operands
    ~FlushDenormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
    std::uint64_t before_;

public:
    FlushDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(before_ | (std::uint64_t(1) << 24)));
    }
    ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
#else
public:
    FlushDenormals() {}
#endif
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;
};

}  // namespace tensormachines
