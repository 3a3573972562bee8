// Threads that live as long as one call: no pool to lose in a fork. Where they wait for each other, they spin
// as long as that usually takes, and then block: a busy machine is left alone.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "denormals.hpp"

namespace tensormachines {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Lets nobody through before all have come. Whoever comes last never waits.
class Barrier {
    static constexpr int MOST_SPINS = 2048;  // some 30 microseconds
    static constexpr unsigned PROBE = 16;    // waits until one spins as long as that, whatever was seen

    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 1;
    std::atomic<int> arrived_{0}, asleep_{0}, spins_{MOST_SPINS};
    std::atomic<unsigned> round_{0};

    // Returns whether the round ended in time. Spinning in vain halves the time that the next ones spin: the
    // others are then likely to have no processor.
    bool spin(unsigned mine) {
        const int most = mine % PROBE == 0 ? MOST_SPINS : spins_.load(std::memory_order_relaxed);
        for (int i = 0; i < most; ++i) {
            if (round_.load(std::memory_order_acquire) != mine) {
                spins_.store(MOST_SPINS, std::memory_order_relaxed);
                return true;
            }
            pause();
        }
        spins_.store(most / 2, std::memory_order_relaxed);
        return false;
    }

public:
    // Says how many will come, before any does.
    void expect(int count) { count_ = count; }

    void wait() {
        if (count_ == 1) return;
        const unsigned mine = round_.load();
        if (arrived_.fetch_add(1) + 1 == count_) {
            arrived_.store(0);
            round_.store(mine + 1);
            // Either this sees that somebody sleeps, or they have seen the new round.
            if (asleep_.load() == 0) return;
            { std::lock_guard<std::mutex> lock(mutex_); }
            changed_.notify_all();
            return;
        }
        if (spin(mine)) return;
        std::unique_lock<std::mutex> lock(mutex_);
        ++asleep_;
        changed_.wait(lock, [&] { return round_.load() != mine; });
        --asleep_;
    }
};

// Up to `threads` threads, the one that makes it among them, for any number of bodies that all of them run.
class Team {
    const int wanted_;
    bool started_ = false, open_ = false, over_ = false;
    std::vector<std::thread> others_;
    std::mutex mutex_;
    std::condition_variable opened_;
    Barrier barrier_;
    void (*call_)(void*, int) = nullptr;
    void* body_ = nullptr;

    void serve(int t) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            opened_.wait(lock, [&] { return open_; });
        }
        const FlushDenormals flush;
        for (;;) {
            barrier_.wait();
            if (over_) return;
            call_(body_, t);
            barrier_.wait();
        }
    }

public:
    explicit Team(int threads) : wanted_(threads) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() {
        over_ = true;
        if (started_) barrier_.wait();
        for (auto& other : others_) other.join();
    }

    // Starts the threads, unless they run already, and returns their number: where the system refuses some,
    // fewer do the work.
    int start() {
        if (!started_) {
            try {
                if (wanted_ > 1) others_.reserve(wanted_ - 1);
                for (int t = 1; t < wanted_; ++t) others_.emplace_back([this, t] { serve(t); });
            } catch (const std::system_error&) {
            } catch (const std::bad_alloc&) {
            }
            barrier_.expect(int(others_.size()) + 1);
            started_ = true;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                open_ = true;
            }
            opened_.notify_all();
        }
        return int(others_.size()) + 1;
    }

    // Runs body(number of the thread) on all threads; bodies may neither throw nor leave a `wait` out.
    template <class Body>
    void run(Body body) {
        const FlushDenormals flush;
        if (start() == 1) return body(0);
        call_ = [](void* of, int t) { (*static_cast<Body*>(of))(t); };
        body_ = &body;
        barrier_.wait();
        body(0);
        barrier_.wait();
    }

    // In a body: waits until all threads are here.
    void wait() { barrier_.wait(); }
};

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

}  // namespace tensormachines
