// Access to words of rings (schema/ring.h), which programs' threads also access without the engine's lock.
#pragma once
#include <cstdint>

namespace nd {

inline uint32_t loadWord(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline uint32_t peekWord(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
inline void storeWord(uint32_t* p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
// Reads 64 bits in two words, the low one first. The halves may belong to different values if the program writes
// meanwhile.
inline uint64_t peekWide(const uint32_t* low) { return uint64_t(peekWord(low + 1)) << 32 | peekWord(low); }

}  // namespace nd
