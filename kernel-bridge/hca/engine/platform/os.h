// What any system has: a clock, random numbers, aligned memory, and a processor to give up.
#pragma once
#include <cstddef>
#include <cstdint>

namespace nd {

// Nanoseconds since some time in the past; never goes back.
uint64_t monotonicNs();

// Numbers that nobody can guess. Ends the process if the system has none: keys that can be guessed are worse than no HCA.
void fillRandom(void* buffer, size_t bytes);

// Lets another thread that is ready run.
void yieldThread();

// Null: no memory. `alignment`: a power of two. What it gives goes back by freeAligned().
void* allocateAligned(size_t alignment, size_t bytes);
void freeAligned(void* memory);

}  // namespace nd
