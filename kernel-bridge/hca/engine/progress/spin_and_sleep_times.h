// Every number by which threads decide whether they poll, spin, sleep, or leave the HCA to another one.
#pragma once
#include <cstdint>

namespace nd::progress {

// ── Who owns progress (owner.h, engine_thread.h)

// How long a poll keeps the engine's thread away: several times what a program does between two polls that follow each
// other, and short beside every timer of the transport. Deferred ACKs and ACK time-outs build on it
// (Context::kDeferredAckNs).
constexpr uint64_t kMarkNs = 1'000'000;
// The same at most where CPUs are scarce: two turns of a scheduler whose slices are 3 to 4 ms.
constexpr uint64_t kMostMarkNs = 8 * kMarkNs;
// How long the engine's thread waits for a thread that is ready and has no CPU. A thread that has not run for so long
// may not run soon.
constexpr uint64_t kPreemptedNs = 64'000'000;
// Steps of the engine's thread before it releases the lock in any case, and how often it then yields to those who want
// it.
constexpr uint32_t kStepsPerTurn = 16;
constexpr uint32_t kYieldsPerTurn = 100;

// ── A thread that polls (busy_poll.h)

// A thread that has polled without result for so long gives its CPU to others, among whom may be the one that it waits
// for.
constexpr uint64_t kYieldAfterNs = 50'000;
// Polls further apart are not a wait: the program does other work in between.
constexpr uint64_t kOtherWorkNs = 20'000;
// Polls closer together than this do nothing else in between: each may look further for a moment.
constexpr uint64_t kBusyGapNs = 2'000;
// Rounds over the rings of the local link in one poll of a thread that does nothing else: half a microsecond.
constexpr uint32_t kRingLooks = 256;

// ── A thread that waits for an event (waiting_thread.h, poll_hint.h, spin_payoff.h)

// How long it polls before it sleeps: about what a sleep and its wake-up cost, so polling without result doubles that
// at most.
constexpr uint64_t kSpinNs = 20'000;
// The same for a program that polls between turns of its event loop: its sleep costs a notification, too.
constexpr uint64_t kLoopSpinNs = 50'000;
// A longer time between two polls of a spin was another thread's: longer than any step, and shorter than a scheduler's
// slice.
constexpr uint64_t kPreemptionNs = 200'000;
// Sleeps without a spin after repeated failures, at most.
constexpr uint32_t kMostSkips = 64;
// Within one wait the rings of the local link are polled alone for so long; then the sockets are, too.
constexpr uint64_t kRingsAloneNs = 50'000;
// Steps before it sleeps. A host that is busier than that is the engine's thread's.
constexpr uint32_t kStepsBeforeSleep = 8;
// How often a thread that is blocked in native code checks whether V8 has asked it to stop.
constexpr int64_t kStopCheckMs = 50;

// ── A thread that waits for requests (parking.h)

// How long the kernel's thread stays in native code for its next request. A shorter time costs more than returning to
// the event loop: it would often be the system's next timer, which must be set and cancelled.
constexpr int64_t kParkMicroseconds = 10'000;

// ── Which descriptors a poll looks at (poll_schedule.h)

// Polls of the busiest socket alone, before all descriptors are polled.
constexpr uint32_t kPollsOfOne = 4;
// Further polls of it in one step of a thread that has polled without result, at most.
constexpr uint32_t kMostRepeats = 7;
// While the local link is up: the first gap between two polls of the sockets that find nothing, and the longest. A poll
// is a system call, which costs as much as many packets on that link. A packet from another host is taken in so much
// later at most.
constexpr uint64_t kFirstGapNs = 500, kLongestGapNs = 100'000;

}  // namespace nd::progress
