// Measures the engine's ICRC of packets, in payload bytes per second.
//
//   icrc [--bytes N] [--count N]
#include <cstdlib>
#include "bench.h"
#include "base/icrc.h"

int main(int argc, char** argv) {
  const options o = parse(argc, argv, 4096, 2000);
  const uint32_t bytes = uint32_t(o.bytes);
  constexpr int kBatch = 64;
  // The buffer has room for a BTH, so that the payload is aligned as in a packet.
  uint8_t* packet = static_cast<uint8_t*>(private1(bytes + nd::kBthBytes));
  double* samples = static_cast<double*>(calloc(size_t(o.count), sizeof *samples));
  if (samples == nullptr) die("calloc");
  pinTo(&o, 0);
  nd::IcrcHeaders headers;
  uint32_t sum = 0;
  for (long i = -o.count / 10; i < o.count; i++) {
    const double start = nowUs();
    for (int k = 0; k < kBatch; k++) {
      packet[0] = uint8_t(k);
      sum += nd::icrcOf(headers, packet, bytes + nd::kBthBytes);
    }
    if (i >= 0) samples[i] = nowUs() - start;
  }
  __asm__ volatile("" : : "r"(sum));
  reportBandwidth("icrc", samples, o.count, double(bytes) * kBatch);
  return 0;
}
