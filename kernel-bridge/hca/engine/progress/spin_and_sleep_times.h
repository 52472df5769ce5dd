// Every number that threads use to decide whether to poll, spin, sleep, or leave the HCA to another thread.
#pragma once
#include <cstdint>

namespace nd::progress {

// ── Who owns progress (owner.h, engine_thread.h)

// How long a poll keeps the engine's thread away. This is several times the work of a program between two consecutive
// polls, and short compared to every timer of the transport. Deferred ACKs and ACK timeouts depend on it
// (Context::kDeferredAckNs).
constexpr uint64_t kMarkNs = 1'000'000;
// Maximum of that time where CPUs are scarce: two turns of a scheduler with time slices of 3 to 4 ms.
constexpr uint64_t kMostMarkNs = 8 * kMarkNs;
// How long the engine's thread waits for a thread that is runnable but has no CPU. A thread that has not run for that
// long may not run soon.
constexpr uint64_t kPreemptedNs = 64'000'000;
// Number of steps after which the engine's thread releases the lock in any case, and how often it then yields to
// waiting threads.
constexpr uint32_t kStepsPerTurn = 16;
constexpr uint32_t kYieldsPerTurn = 100;

// ── A thread that polls (busy_poll.h)

// A thread that has polled without result for this long yields its CPU to others, perhaps to the very thread for which
// it waits.
constexpr uint64_t kYieldAfterNs = 50'000;
// Polls further apart than this are not a wait, because the program does other work in between.
constexpr uint64_t kOtherWorkNs = 20'000;
// Polls closer together than this have no other work in between, so each may poll on for a moment.
constexpr uint64_t kBusyGapNs = 2'000;
// Number of rounds over the rings of the local link in one poll by a thread that does nothing else; they take half a
// microsecond.
constexpr uint32_t kRingPolls = 256;

// ── A thread that waits for an event (waiting_thread.h, poll_hint.h, spin_payoff.h)

// How long it polls before it sleeps: about the cost of a sleep and its wake-up, so that polling without result at most
// doubles that cost.
constexpr uint64_t kSpinNs = 20'000;
// The same time for a program that polls between iterations of its event loop, whose sleep also costs a notification.
constexpr uint64_t kLoopSpinNs = 50'000;
// If the time between two polls of a spin is longer, another thread has used it. The limit is longer than any step, and
// shorter than a scheduler's time slice.
constexpr uint64_t kPreemptionNs = 200'000;
// Maximum number of sleeps without a spin after repeated failures.
constexpr uint32_t kMostSkips = 64;
// In a wait, only the rings of the local link are polled for this long; then the sockets are polled as well.
constexpr uint64_t kRingsAloneNs = 50'000;
// Number of steps before it sleeps. A busier host is left to the engine's thread.
constexpr uint32_t kStepsBeforeSleep = 8;
// How often a thread that is blocked in native code checks whether V8 has to stop it.
constexpr int64_t kStopCheckMs = 50;

// ── A thread that waits for requests (parking.h)

// How long the kernel's thread stays in native code for its next request. A shorter time costs more than returning to
// the event loop: it would often be the next OS timer, which must be set and cancelled.
constexpr int64_t kParkMicroseconds = 10'000;

// ── Which descriptors a poll checks (poll_schedule.h)

// Number of polls of the busiest socket alone, before all descriptors are polled.
constexpr uint32_t kPollsOfOne = 4;
// Maximum number of further polls of it in one step of a thread that has polled without result.
constexpr uint32_t kMostRepeats = 7;
// While the local link is up: the shortest and the longest gap between two empty polls of the sockets. A poll is a
// system call, which costs as much as many packets on that link. A packet from another host is delayed by at most that
// much.
constexpr uint64_t kFirstGapNs = 500, kLongestGapNs = 100'000;

}  // namespace nd::progress
