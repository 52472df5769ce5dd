// Copies of user data from the start of a page to 16 bytes after the start of another, where a large malloc allocation
// begins: by the engine or, in mode `memcpy`, by the C library. Bytes per second.
//
//   copies [memcpy] [--bytes N] [--count N] [--cpus A,B] [--no-pin]
#include <cstdlib>
#include "bench.h"
#include "base/copy.h"

int main(int argc, char** argv) {
  const options o = parse(argc, argv, 65'536, 20'000);
  const bool plain = strcmp(o.mode, "memcpy") == 0;
  constexpr size_t kAbove = 16;
  const size_t bytes = size_t(o.bytes);
  const auto* const from = static_cast<uint8_t*>(private1(bytes));
  uint8_t* const to = static_cast<uint8_t*>(private1(bytes + kAbove)) + kAbove;
  double* samples = static_cast<double*>(calloc(size_t(o.count), sizeof *samples));
  if (samples == nullptr) die("calloc");
  pinTo(&o, 0);
  for (long i = -o.count / 10; i < o.count; i++) {
    const double start = nowUs();
    if (plain) memcpy(to, from, bytes);
    else nd::copyBytes(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
    if (i >= 0) samples[i] = nowUs() - start;
  }
  reportBandwidth(plain ? "memcpy" : "copyBytes", samples, o.count, double(bytes));
  return 0;
}
