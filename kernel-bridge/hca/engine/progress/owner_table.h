// Defines the owner of progress in two tables, one for a thread of the program that waits for an event, and one for the
// engine's thread.
//
//   polling    a thread of the program calls Engine::progress() repeatedly: its mark (owner.h) is fresh
//   spinning   a thread waits for an event and polls before it sleeps
//   sleeping   it sleeps on the host's descriptors; a packet wakes it, and it processes the packet
//   away       none of these: the engine's thread owns progress
//
// Only one waiting thread at a time has the claim. The others sleep until their own event, and are served by that
// thread or by the engine's thread.
#pragma once
#include <cstdint>

namespace nd {

// ── A thread that waits (waiting_thread.h)

enum class WaitState : uint8_t {
  kAway,      // does something else
  kSpinning,  // has the claim, and polls
  kWoken,     // has the claim, and polls for the first time after a sleep
  kSleeping,  // has the claim
  kServed,    // waits without the claim
};
enum class WaitEvent : uint8_t {
  kEnter,  // the thread waits, and has the claim: it was free, or is its own
  kTaken,  // the same without the claim: another thread has it, or had it when this wait began
  kEmpty,  // the first poll has not found the event
  kSleep,  // nothing is left to do
  kSpent,  // more is left to do after kStepsBeforeSleep steps
  kLeave,  // the event has occurred, or the wait is over
};
enum WaitAction : uint8_t {
  kNoAction = 0,
  kRenew = 1,        // a new claim instead of the old one, and a mark: the engine's thread yields to it once more
  kRelease = 2,      // release the claim; if others are served, the engine's thread takes over immediately
  kMark = 4,         // otherwise it takes over in kMarkNs, before which the program is likely to return
  kMarkQuietly = 8,  // the same without postponing the alarm, which would be a system call between the wake-up and the
                     // event
  kJoinServed = 16,  // wake the engine's thread, which serves
  kLeaveServed = 32,
  kImpossible = 64,
};
struct WaitCell {
  WaitState next;
  uint8_t actions;
};

constexpr uint32_t kWaitStates = 5, kWaitEvents = 6;
constexpr WaitCell kNever = {WaitState::kAway, kImpossible};
// clang-format off
constexpr WaitCell kWaitTable[kWaitStates][kWaitEvents] = {
    /* away     */ {/* enter */ {WaitState::kSpinning, kNoAction},
                    /* taken */ {WaitState::kServed, kJoinServed},
                    /* empty */ kNever,
                    /* sleep */ kNever,
                    /* spent */ kNever,
                    /* leave */ {WaitState::kAway, kNoAction}},
    /* spinning */ {/* enter */ {WaitState::kSpinning, kRenew},
                    /* taken */ kNever,
                    /* empty */ {WaitState::kSpinning, kNoAction},
                    /* sleep */ {WaitState::kSleeping, kNoAction},
                    /* spent */ {WaitState::kServed, kRelease | kMark | kJoinServed},
                    /* leave */ {WaitState::kAway, kRelease | kMark}},
    /* woken    */ {/* enter */ {WaitState::kSpinning, kRenew},
                    /* taken */ kNever,
                    /* empty */ {WaitState::kSpinning, kNoAction},
                    /* sleep */ kNever,
                    /* spent */ kNever,
                    /* leave */ {WaitState::kAway, kRelease | kMarkQuietly}},
    /* sleeping */ {/* enter */ {WaitState::kWoken, kRenew},
                    /* taken */ kNever,
                    /* empty */ kNever,
                    /* sleep */ kNever,
                    /* spent */ kNever,
                    /* leave */ {WaitState::kAway, kRelease | kMark}},
    /* served   */ {/* enter */ kNever,
                    /* taken */ {WaitState::kServed, kNoAction},
                    /* empty */ kNever,
                    /* sleep */ kNever,
                    /* spent */ kNever,
                    /* leave */ {WaitState::kAway, kLeaveServed}},
};
// clang-format on
constexpr WaitCell waitCell(WaitState state, WaitEvent event) {
  return kWaitTable[static_cast<uint32_t>(state)][static_cast<uint32_t>(event)];
}
constexpr bool hasClaim(WaitState state) {
  return state == WaitState::kSpinning || state == WaitState::kWoken || state == WaitState::kSleeping;
}

// ── The engine's thread (engine_thread.h)

enum class OwnerState : uint8_t {
  kPolling,  // the newest mark is fresh, and newer than the last call of EngineThread::wake()
  kWaiting,  // a thread has the claim, and this thread has not yielded to that claim yet
  kLate,     // a thread has polled, or has a claim, and is late
  kAway,     // none
};
enum class WakeCause : uint8_t {
  kReadable,  // the host's descriptor
  kDue,       // a timer of the engine
  kElapsed,   // the time for which this thread yielded has elapsed; or its first turn
};
enum class Turn : uint8_t {
  kYieldToMark,   // sleep until the mark is too old. Polling postpones that, and runs the timers
  kYieldToClaim,  // sleep for kMarkNs, or until a timer is due: the thread with the claim was woken as well, and takes
                  // over
  kYieldIfPreempted,  // the same if that thread is runnable and only lacks a CPU, which serving would take from it;
                      // otherwise serve
  kServe,
};

constexpr uint32_t kOwnerStates = 4, kWakeCauses = 3;
constexpr Turn kTurnTable[kOwnerStates][kWakeCauses] = {
    //             readable                 due                 elapsed
    /* polling */ {Turn::kYieldToMark, Turn::kYieldToMark, Turn::kYieldToMark},
    /* waiting */ {Turn::kYieldToClaim, Turn::kServe, Turn::kYieldIfPreempted},
    /* late    */ {Turn::kYieldIfPreempted, Turn::kServe, Turn::kYieldIfPreempted},
    /* away    */ {Turn::kServe, Turn::kServe, Turn::kServe},
};
constexpr Turn turnOf(OwnerState state, WakeCause cause) {
  return kTurnTable[static_cast<uint32_t>(state)][static_cast<uint32_t>(cause)];
}

}  // namespace nd
