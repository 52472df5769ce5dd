// Functions of any system: a clock, random numbers, aligned memory, and yielding the processor.
#pragma once
#include <cstddef>
#include <cstdint>

namespace nd {

// Nanoseconds since some time in the past; never goes back.
uint64_t monotonicNs();

// Unpredictable numbers. Ends the process if the system has none: predictable keys are worse than no HCA.
void fillRandom(void* buffer, size_t bytes);

// Lets another ready thread run.
void yieldThread();

// Null: no memory. `alignment`: a power of two. Free with freeAligned().
void* allocateAligned(size_t alignment, size_t bytes);
void freeAligned(void* memory);

}  // namespace nd
