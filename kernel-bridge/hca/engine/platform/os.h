// OS-independent functions: clocks, random numbers, aligned memory, files, and yielding the CPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/unique_fd.h"

namespace nd {

// Returns monotonic nanoseconds since an arbitrary time.
uint64_t monotonicNs();
// Returns nanoseconds since 1970.
uint64_t wallClockNs();

// Fills a buffer with unpredictable random bytes. Ends the process if none are available, since predictable keys are
// worse than no HCA.
void fillRandom(void* buffer, size_t bytes);

// A process on this host.
using ProcessId = int64_t;
ProcessId ownProcessId();
// Returns whether the process has ended and no longer writes to any memory. If its id has been reused, it counts as
// alive.
bool hasEnded(ProcessId process);

// Lets another ready thread run.
void yieldThread();

// Returns a barrier: every earlier access by the calling thread is seen by all threads of this process, and vice versa.
// Returns null if the OS has no such barrier. The first call takes about 20 ms.
using Barrier = void (*)();
Barrier barrierOfAllThreads();

// Keeps this library loaded until the process ends, even if all its users release it.
void keepLibraryLoaded();
// Calls `end` on an orderly process exit, while its threads still run. Returns false if the OS offers libraries no such
// hook, so that the caller has to do this.
bool atEndOfProcess(void (*end)());
// Returns the address of the function that the program, or a library that it has loaded, exports by that name, or null.
void* findSymbol(const char* name);

// Creates a file that only this user may access. Returns 0 or an errno: EEXIST if anything has the name, even a
// dangling link.
int createFile(const std::string& path, UniqueFd* file);
int writeFile(Descriptor file, const void* bytes, size_t length);

// Returns null if memory is exhausted. `alignment` must be a power of two. Free the memory with freeAligned().
void* allocateAligned(size_t alignment, size_t bytes);
void freeAligned(void* memory);

}  // namespace nd
