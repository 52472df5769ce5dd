// OS-independent functions: clocks, random numbers, aligned memory, files, and yielding the CPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/unique_fd.h"

namespace nd {

// Nanoseconds since an arbitrary time; monotonic.
uint64_t monotonicNs();
// Nanoseconds since 1970.
uint64_t wallClockNs();

// Unpredictable random bytes. Ends the process if none are available: predictable keys are worse than no HCA.
void fillRandom(void* buffer, size_t bytes);

// A process of this host.
using ProcessId = int64_t;
ProcessId ownProcessId();
// Whether that process has ended and no longer writes to any memory. An id that has been reused counts as alive.
bool hasEnded(ProcessId process);

// Lets another ready thread run.
void yieldThread();

// Every earlier access by the calling thread is seen by all threads of this process, and vice versa. Null: the OS has
// no such barrier. The first call takes some 20 ms.
using Barrier = void (*)();
Barrier barrierOfAllThreads();

// Keeps this library loaded until the process ends, even if all its users release it.
void keepLibraryLoaded();
// Calls `end` on an orderly process exit, while its threads still run. False: the OS offers libraries no such hook; the
// caller has to end it.
bool atEndOfProcess(void (*end)());
// The address of the function that the program or a library it has loaded exports by that name; null: none.
void* findSymbol(const char* name);

// Creates a file for this user alone. Returns 0 or an errno: EEXIST if anything has the name, even a dangling link.
int createFile(const std::string& path, UniqueFd* file);
int writeFile(Descriptor file, const void* bytes, size_t length);

// Null: out of memory. `alignment`: a power of two. Free with freeAligned().
void* allocateAligned(size_t alignment, size_t bytes);
void freeAligned(void* memory);

}  // namespace nd
