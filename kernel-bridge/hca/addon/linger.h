// A thread that stays for what comes next, for a moment, instead of going back to its event loop.
#pragma once
#include "platform/wait_word.h"

namespace nd::door {

// Where the thread of one event loop waits. Whoever has something for it calls it by the number of what it waits for; if that
// answers false, the loop itself is to be woken. Any number of threads call, one stays.
class Linger {
 public:
  // A number to be called by; the loop's thread.
  int32_t newNumber() { return nextNumber_++; }

  // Stays until `look` answers true, at most for so long or until it is called; answers what `look` answers in the end. Does not
  // stay where the loop was woken since the thread was there last.
  template <typename Look>
  bool stay(int32_t number, int64_t microseconds, Look look) {
    int32_t word = kAway;
    if (!word_.compare_exchange_strong(word, number)) {
      if (look()) return true;
      word_.store(kAway);  // to the loop now
      return false;
    }
    // What came before the word was set woke the loop; what comes after it calls.
    const bool found = look();
    if (!found) waitWhile(word_, number, microseconds);
    word = number;
    if (!word_.compare_exchange_strong(word, kAway) && word == kCalled) word_.compare_exchange_strong(word, kAway);
    return found || look();
  }

  // ── Between come() and leave() a thread is busy with what that number stands for, and may stay in between. After leave() it looks
  // once more: who calls it, or knocks, while it is here need not wake the loop.
  void come(int32_t number) { here_.store(number); }
  void leave() { here_.store(kAway); }
  // Whether somebody has knocked since this was asked last.
  bool knocked() { return knocked_.load() && knocked_.exchange(false); }
  // From now on the thread asks for that whenever it looks.
  void answerKnocks() { answers_.store(true); }

  // True: a thread is here, or stayed, for this number, and looks again now.
  bool call(int32_t number) {
    const bool here = here_.load() == number;
    if (!word_.compare_exchange_strong(number, kCalled)) return here;
    wakeAll(word_);
    return true;
  }

  // For what the thread does not stay for. True: it is here and learns of it.
  bool knock() {
    if (!answers_.load() || here_.load() == kAway) return false;
    knocked_.store(true);
    int32_t word = here_.load();  // still: else it may have looked for the last time before
    if (word == kAway) return false;
    if (word_.compare_exchange_strong(word, kCalled)) wakeAll(word_);
    return true;
  }

  // After the loop was woken: a thread that stays goes back to it, and (`remember`) so does one that is busy now, as soon as it finds
  // nothing more to do. What a thread stays for need not be remembered: it looks for that before it stays.
  void wokeLoop(bool remember) {
    int32_t word = word_.load();
    while (word >= kFirst || (remember && word != kWoken)) {
      if (!word_.compare_exchange_weak(word, kWoken)) continue;
      if (word >= kFirst) wakeAll(word_);
      return;
    }
  }

 private:
  // Or the number that is waited for.
  static constexpr int32_t kAway = 0, kCalled = 1, kWoken = 2, kFirst = 3;
  std::atomic<int32_t> word_{kAway}, here_{kAway};
  std::atomic<bool> answers_{false}, knocked_{false};
  int32_t nextNumber_ = kFirst;
};

}  // namespace nd::door
