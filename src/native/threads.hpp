// Threads that live as long as one call: no pool to lose in a fork, and waits that block instead of spinning.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "denormals.hpp"

namespace tensormachines {

// Runs body(thread number) on up to `threads` threads, this one among them. Where the system refuses some of
// them, fewer do the work: prepare(number of threads) is called when that number is known, before any body.
template <class Prepare, class Body>
void run_threads(int threads, Prepare prepare, Body run) {
    auto body = [&](int t) {
        const FlushDenormals flush;
        run(t);
    };
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

}  // namespace tensormachines
