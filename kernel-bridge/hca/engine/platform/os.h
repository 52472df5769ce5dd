// Functions of any system: clocks, random numbers, aligned memory, files, and yielding the processor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/unique_fd.h"

namespace nd {

// Nanoseconds since some time in the past; never goes back.
uint64_t monotonicNs();
// Since 1970.
uint64_t wallClockNs();

// Unpredictable numbers. Ends the process if the system has none: predictable keys are worse than no HCA.
void fillRandom(void* buffer, size_t bytes);

// A process of this host.
using ProcessId = int64_t;
ProcessId ownProcessId();
// Whether that process has ended, and so writes to no memory any more. An id that has gone to a successor reads as
// alive.
bool hasEnded(ProcessId process);

// Lets another ready thread run.
void yieldThread();

// What the calling thread of this process did before is seen by all its threads, and the other way round. Null: the
// system has no such barrier. The first call takes some 20 ms.
using Barrier = void (*)();
Barrier barrierOfAllThreads();

// This library stays in memory until the process ends, whoever else lets go of it.
void keepLibraryLoaded();
// Calls `end` when the process ends in order, while its threads still run. False: the system has no such time for a
// library; its user ends it.
bool atEndOfProcess(void (*end)());
// What the program, or a library that it has loaded, calls by that name; null: nothing.
void* findSymbol(const char* name);

// A new file for this user alone. 0 or an errno: EEXIST if anything has the name, also a link that leads nowhere.
int createFile(const std::string& path, UniqueFd* file);
int writeFile(Descriptor file, const void* bytes, size_t length);

// Null: no memory. `alignment`: a power of two. Free with freeAligned().
void* allocateAligned(size_t alignment, size_t bytes);
void freeAligned(void* memory);

}  // namespace nd
