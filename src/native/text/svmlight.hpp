// Rows of svmlight text, "label index:value index:value ...": what is not written as plainly as that is left
// to Python, see tensormachines._data.files.svmlight.
#pragma once
#include <cmath>
#include <cstdint>

namespace tensormachines {

// Reads numbers from [at, end), which must be followed by a character that is no part of a number.
class Cursor {
public:
    Cursor(const char* at, const char* end) : at_(at), end_(end) {}

    bool over() const { return at_ == end_; }
    bool take(char c) { return !over() && *at_ == c ? ++at_, true : false; }
    void skip_spaces() {
        while (!over() && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }
    void skip_blank_lines() {
        do skip_spaces();
        while (take('\n'));
    }
    // Whether a word ends here.
    bool at_space() const {
        return over() || *at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n';
    }

    // Up to 18 digits, which fit into 64 bits.
    bool index(std::int64_t& result) {
        const char* begin = at_;
        result = 0;
        for (; !over() && is_digit(*at_) && at_ - begin < 18; ++at_) result = 10 * result + (*at_ - '0');
        return at_ > begin && (over() || !is_digit(*at_));
    }

    // The nearest float64, where two exact ones are enough for it: digits below 2^53, times or divided by a
    // power of ten up to 10^22 (Clinger 1990). `other` converts the words for which they are not.
    template <class Other>
    bool number(double& result, Other other) {
        static constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        const char* begin = at_;
        const bool negative = take('-');
        if (!negative) take('+');
        std::uint64_t digits = 0;
        std::int64_t count = 0, exponent = 0;
        for (; !over() && is_digit(*at_); ++at_, ++count) digits = 10 * digits + std::uint64_t(*at_ - '0');
        if (take('.'))
            for (; !over() && is_digit(*at_); ++at_, ++count, --exponent)
                digits = 10 * digits + std::uint64_t(*at_ - '0');
        if (count == 0) return false;
        if (!over() && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            const bool falls = take('-');
            if (!falls) take('+');
            std::int64_t power = 0;
            if (!index(power)) return false;
            exponent += falls ? -power : power;
        }
        if (count > 18 || digits > (std::uint64_t(1) << 53) || exponent < -22 || exponent > 22)
            return other(begin, at_, result);
        const double size =
            exponent < 0 ? double(digits) / POWERS[-exponent] : double(digits) * POWERS[exponent];
        result = negative ? -size : size;
        return true;
    }

private:
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

    const char *at_, *end_;
};

struct SvmlightRows {
    std::int64_t rows, entries;
    double* y;              // (rows)
    std::int64_t* indptr;   // (rows + 1)
    std::int64_t* indices;  // (entries)
    double* values;         // (entries)
};

// Returns whether the text has so many rows and entries, all of them plain.
template <class Other>
bool read_svmlight(Cursor text, const SvmlightRows& found, Other other) {
    std::int64_t entry = 0;
    found.indptr[0] = 0;
    for (std::int64_t row = 0; row < found.rows; ++row) {
        text.skip_blank_lines();
        if (!text.number(found.y[row], other) || !text.at_space()) return false;
        for (text.skip_spaces(); !text.over() && !text.take('\n'); text.skip_spaces()) {
            if (entry == found.entries || !text.index(found.indices[entry]) || !text.take(':') ||
                !text.number(found.values[entry], other) || !text.at_space())
                return false;
            ++entry;
        }
        found.indptr[row + 1] = entry;
    }
    text.skip_blank_lines();
    return text.over() && entry == found.entries;
}

}  // namespace tensormachines
