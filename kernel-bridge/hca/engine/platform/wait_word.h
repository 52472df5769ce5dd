// A word in memory on which threads of this process sleep and are woken.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

// Sleeps while the word has this value. May return earlier, so check the word again.
void sleepWhile(std::atomic<uint32_t>& word, uint32_t value);
// Wakes one sleeper.
void wakeOne(std::atomic<uint32_t>& word);

// Waits until the word has another value, at most for this many microseconds (negative: without limit). Returns false
// if the value is unchanged.
bool waitWhile(std::atomic<int32_t>& word, int32_t value, int64_t microseconds);
// Wakes all waiting threads. Call after changing the word.
void wakeAll(std::atomic<int32_t>& word);

}  // namespace nd
