// Several processes execute atomics on the same words at the same time: directly, over the local link, over the
// network, and as the owner of the memory. None is lost or counted twice, whatever its path.
#include <thread>

#include "host_peer.h"

using namespace hosttest;

namespace {

// The sums: one word counts FETCH_ADDs, and another one, in another cache line, the COMPARE_EXCHANGEs that have added
// one.
constexpr uint32_t kAdds = 0, kSwaps = 1, kWordStride = 64;
// The number of FETCH_ADDs per COMPARE_EXCHANGE, because a COMPARE_EXCHANGE that takes long must still find the word
// unchanged.
constexpr uint32_t kAddsEach = 512, kAddsEachByPackets = 4;

struct Count {
  uint64_t added, swapped, direct;
  bool inOrder;  // each result was greater than the one before
};

void complete(bool good) {
  if (!good) std::_Exit(3);
}

class Adder {
 public:
  Adder(Side& side, const Hello& other) : side_(side), other_(other) {}

  uint64_t run(uint32_t opcode, uint32_t word, uint64_t operand, uint64_t swap = 0) {
    auto* wqe = reinterpret_cast<uint32_t*>(side_.qpRing + kQpHeaderBytes + (side_.sent % kEntries) * kStride);
    const auto put = [&](uint32_t at, uint64_t value) {
      wqe[at] = static_cast<uint32_t>(value);
      wqe[at + 1] = static_cast<uint32_t>(value >> 32);
    };
    std::memset(wqe, 0, kStride);
    wqe[kSwOpcode] = opcode;
    wqe[kSwFlags] = kSendFlagSignaled;
    wqe[kSwSgeCount] = 1;
    put(kSwRemoteLo, other_.address + word * kWordStride);
    wqe[kSwRkey] = other_.rkey;
    put(kSwCompareLo, operand);
    put(kSwSwapLo, swap);
    side_.sge(wqe + kSendWqeHeaderBytes / 4, 0, 8);
    store(reinterpret_cast<uint32_t*>(side_.qpRing) + kQpSendProducer, ++side_.sent);
    side_.engine.doorbell(side_.qp);
    complete(side_.polled() == kWcSuccess);
    uint64_t result;
    std::memcpy(&result, side_.memory.data(), 8);
    return result;
  }

  void add() {
    const uint64_t result = run(kOpFetchAdd, kAdds, 1);
    count.inOrder &= count.added == 0 || result > last_;
    last_ = result;
    count.added++;
  }
  void swap() {
    const uint64_t found = run(kOpCompareExchange, kSwaps, seen_, seen_ + 1);
    count.swapped += found == seen_;
    seen_ = found == seen_ ? found + 1 : found;
  }

  Count count{0, 0, 0, true};

 private:
  Side& side_;
  const Hello other_;
  uint64_t last_ = 0, seen_ = 0;
};

// Adds until it is stopped. Reports when it has executed enough of each operation, and at the end their numbers.
int adderMain(const std::string& words) {
  const bool direct = words == "allocate";
  startProcess(optionsFrom(words));
  Side side(direct);
  const Hello own = side.hello();
  complete(write(1, &own, sizeof own) == sizeof own);
  Hello other{};
  char how = 0;
  complete(read(0, &other, sizeof other) == sizeof other && read(0, &how, 1) == 1);
  side.connect(other, 4096);
  complete(write(1, &how, 1) == 1);
  Adder adder(side, other);
  const uint64_t enough = direct ? 100'000 : 4000;
  bool told = false;
  for (pollfd word = {0, POLLIN, 0}; ::poll(&word, 1, 0) == 0;) {
    for (uint32_t i = 0; i < (direct ? kAddsEach : kAddsEachByPackets); i++) adder.add();
    adder.swap();
    if (told || adder.count.added < enough || adder.count.swapped < 20) continue;
    told = true;
    complete(write(1, &how, 1) == 1);
  }
  adder.count.direct = engineCounter("direct_atomic");
  complete(write(1, &adder.count, sizeof adder.count) == sizeof adder.count);
  while (read(0, &how, 1) == 1)
    ;  // returns the value that it has read
  return hosttest::failures;
}

// Two processes with direct access, one on the local link, one over the network, and a thread of this process.
void exactUnderContention() {
  const char* const ways[] = {"allocate", "allocate", "indirect", "wire"};
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<std::unique_ptr<Peer>> peers;
  Registered& memory = sides.emplace_back(std::make_unique<Side>(true))->memory;
  auto* const words = reinterpret_cast<uint64_t*>(memory.data());
  for (size_t i = 0; i < std::size(ways); i++) {
    if (i > 0) sides.push_back(std::make_unique<Side>());
    Side& side = *sides[i];
    peers.push_back(std::make_unique<Peer>(ways[i]));
    // Each side has its own protection domain, with a key for the same memory.
    Hello own = side.hello();
    const char how = kRest;
    uint32_t lkey;
    own.address = reinterpret_cast<uint64_t>(words);
    HOST_CHECK(side.engine.registerMr(side.pd, own.address, 4096, kAccessLocalWrite | kAccessRemoteAtomic, &lkey,
                                      &own.rkey) == Status::kSuccess);
    HOST_CHECK(write(peers[i]->in, &own, sizeof own) == sizeof own && write(peers[i]->in, &how, 1) == 1);
    side.connect(peers[i]->hello, 4096);
    peers[i]->awaitConnected();
  }
  std::atomic<bool> stop{false};
  uint64_t ownAdds = 0;
  std::thread own([&] {
    for (; !stop; ownAdds++) __atomic_fetch_add(&words[kAdds], 1, __ATOMIC_SEQ_CST);
  });
  for (const auto& peer : peers) peer->awaitConnected();  // waits until each has executed enough
  uint64_t added = 0, swapped = 0;
  for (size_t i = 0; i < peers.size(); i++) {
    Count count{};
    const char word = 1;
    HOST_CHECK(write(peers[i]->in, &word, 1) == 1 && read(peers[i]->out, &count, sizeof count) == sizeof count);
    HOST_CHECK(count.inOrder && count.added >= 1000 && count.swapped >= 20);
    HOST_CHECK(i < 2 ? count.direct > count.added / 2 : count.direct == 0);
    added += count.added;
    swapped += count.swapped;
  }
  stop = true;
  own.join();
  HOST_CHECK(__atomic_load_n(&words[kAdds], __ATOMIC_SEQ_CST) == added + ownAdds);
  HOST_CHECK(__atomic_load_n(&words[kSwaps * kWordStride / 8], __ATOMIC_SEQ_CST) == swapped);
  for (const auto& peer : peers) peer->end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return adderMain(argv[2]);
  privateNetwork();
  startProcess();
  exactUnderContention();
  return finish("host_atomics");
}
