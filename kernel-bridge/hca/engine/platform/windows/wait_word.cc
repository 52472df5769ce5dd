#include "platform/wait_word.h"

#include "platform/os.h"
#include "platform/windows/system.h"

namespace nd {

void sleepWhile(std::atomic<uint32_t>& word, uint32_t value) { WaitOnAddress(&word, &value, sizeof value, INFINITE); }

void wakeOne(std::atomic<uint32_t>& word) { WakeByAddressSingle(&word); }

bool waitWhile(std::atomic<int32_t>& word, int32_t value, int64_t microseconds) {
  const bool bounded = microseconds >= 0;
  const uint64_t end = bounded ? monotonicNs() + static_cast<uint64_t>(microseconds) * 1000 : 0;
  while (word.load() == value) {
    DWORD milliseconds = INFINITE;
    if (bounded) {
      const uint64_t now = monotonicNs();
      if (now >= end) return false;
      milliseconds = static_cast<DWORD>((end - now + 999'999) / 1'000'000);
    }
    WaitOnAddress(&word, &value, sizeof value, milliseconds);
  }
  return true;
}

void wakeAll(std::atomic<int32_t>& word) { WakeByAddressAll(&word); }

}  // namespace nd
