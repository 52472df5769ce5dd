// A word in memory that threads of this process sleep on, and others wake them by.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

// Sleeps while the word has this value. It may come back earlier: look at the word again.
void sleepWhile(std::atomic<uint32_t>& word, uint32_t value);
// Wakes one that sleeps there.
void wakeOne(std::atomic<uint32_t>& word);

// Waits until the word has another value, at most so many microseconds; negative: without a bound. False: it still had it.
bool waitWhile(std::atomic<int32_t>& word, int32_t value, int64_t microseconds);
// Wakes all that wait there, after the word was changed.
void wakeAll(std::atomic<int32_t>& word);

}  // namespace nd
