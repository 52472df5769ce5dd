// This HCA's part of the host: its slot, the RoCEv2 sockets that it shares with the host's other processes, the
// connections between their slots, RDMA port claims, and QP1 (GSI) traffic. A process with several HCAs counts as
// several processes, here and in the layers below.
//
// Slot     one of 0..253, claimed by the name "slot/<n>" (local_names.h);
//          the OS releases it with the process. QPN = slot << 16 | index, CM id = slot << 24 | ….
// Wire     UDP 4791 on IPv4 and IPv6 wildcard sockets with SO_REUSEPORT, opened on first need (openWire).
//          A BPF selector steers by the slot in the destination QPN. A packet that reaches the wrong process
//          is forwarded over the SEQPACKET connection between the two slots. If processes cannot share
//          the port, one of them owns it: udp_port_claim.h. Without a wire (port held by another user or
//          driver), same-host packets use that connection from the start.
// Port     an RDMA port is claimed by the name "port/<service hex>/<port>/<gid hex or *>". A process that
//          receives a REQ for another process connects to that name and passes it on. Wildcard and
//          single-address claims conflict. A port chosen by the HCA has no name until a program listens
//          on it: rdma_port_blocks.h.
//
// Outgoing packets pass through a wire sender (wire_sender.h) or the local delivery (local_delivery.h), and incoming
// ones through a wire receiver (wire_receiver.h) or the local delivery. All packets pass packet_tap.h (capture,
// faults), and incoming ones also intake.h.
#pragma once
#include <array>
#include <atomic>
#include <string>
#include "base/packet_link.h"
#include "engine/engine.h"
#include "platform/unique_fd.h"
#include "progress/poll_schedule.h"
#include "progress/sleepers.h"
#include "schema/options.h"

namespace nd {

// Faults of outgoing packets.
struct FaultOptions : FaultRates {
  std::array<uint32_t, 32> dropMadCount{};  // by (attribute id − 0x10): how many such CM messages to drop
};

struct HostOptions : LinkOptions {
  FaultOptions faults;
};

// Locking: the Link functions, configure(), join() and nextDeadline() require the engine's lock. start(), stop(),
// sendMad(), claimPort() and openWire() take it themselves. All others may be called from any thread, with or without
// it.
class Host final : public Link {
 public:
  explicit Host(const Clock& clock);
  ~Host() override;

  // Claims a slot; with kExact or LinkChoice::kWire, also opens the wire. kExact fails with kAccessDenied without the
  // privilege to open a raw socket, and with kNotSupported if the OS has no such socket or under LinkChoice::kLocal.
  Status start(const HostOptions& options, Engine& engine);
  void stop();
  void configure(const HostOptions& options);  // faults and capture may change later (lock held)
  // Applies the options of a further kernel (lock held). Its faults and capture take effect; if it requests none, those
  // in force remain. Returns false, without effect, if it requests LinkChoice::kLocal while another choice is in force,
  // or kWire while kLocal is.
  bool join(const HostOptions& options);
  uint32_t slot() const;
  // Returns how this process announces its links to other processes on this host, as a HostLink of the connection
  // manager.
  enum class Links : uint8_t { kFree, kSeen, kWire, kLocal };
  Links links() const;
  bool wireReady() const;
  // kUnused: nothing has needed the wire yet. kHeld: it could not be opened, or was released; see wireProblem().
  enum class WireState : uint8_t { kNever, kUnused, kOpen, kHeld };
  WireState wireState() const;
  // Searches for the holder of the port. This takes a while, so do not call it with the engine's lock held.
  std::string wireProblem() const;

  // Becomes readable when poll() has something to do.
  Descriptor pollFd() const;
  // Returns when poll() has something to do although the descriptor is not readable (ns), or UINT64_MAX if never.
  uint64_t nextDeadline() const;

  // ── RDMA ports. `service` is the service id without its port (RDMA IP CM service, IBA 1 annex A11): 0x0106 for RC,
  // 0x0111 for UD. `port` 0 requests a free one (49152–65535); the granted port is returned. A null address claims all
  // addresses. claimPort() fails with kAddressAlreadyExists if the port is taken, and with kTooManyAddresses if none is
  // free. It may wait up to a second for another process's reply. Without a reply the port counts as taken, because a
  // stopped process keeps its ports. A claim of all addresses, or of one other than loopback, needs the wire; see
  // openWire().
  Status claimPort(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim);
  // From now on other processes forward requests for that port. A port claimed by number is open from the start.
  Status openPort(uint32_t claim);
  void releasePort(uint32_t claim);
  void releaseKernel(KernelId kernel);  // releases all claims of a kernel that has ended

  // ── QP1. CM ids of a kernel are commIdBase(kernel) | 1..0x3FFFF.
  uint32_t commIdBase(KernelId kernel) const;  // slot << 24 | kernel << 18
  // Sends a MAD immediately. Fails with kInvalidParameter if the P_Key is invalid (its low 15 bits are zero), with
  // kInvalidAddress if the path's source is not an address of this host, with kNetworkUnreachable or kHostUnreachable
  // if there is no route to the destination, and with kNotSupported as openWire() does. A packet lost on the way counts
  // as a success.
  Status sendMad(const Path& path, const uint8_t mad[256], uint16_t pkey);

  // ── Link
  bool send(const Path& path, const OutPacket& packet) override;
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length) override;
  void flush() override;
  bool poll(PacketSink& sink, uint32_t budget) override;
  void pollBusiest(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>& wanted) override;
  bool quiet(uint64_t now) const override;
  void pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>* wanted) override;
  bool isLocal(const Gid& address) override;
  bool lacksWire(const Gid& destination) override;
  Status openWire() override;
  void reportEnd(uint32_t slot, PacketSink& sink) override;
  Status watchPeer(uint32_t slot) override;
  uint32_t interfaceOf(const Gid& address) override;
  std::shared_ptr<LocalPair> localPair(uint32_t slot) override;
  void revoke(uint64_t epoch) override;
  DirectOwner* directOwner() override;
  void settleDirect() override;
  bool directOccupied(const std::vector<DirectWithdrawn>& withdrawn) override;
  bool selfPending() const override;
  // Must be called before a thread waits for pollFd(). From then on peers on the local link make it readable. Returns
  // false if there is work already.
  bool fallAsleep(Sleeper& sleeper);
  // Must be called before a sleeper is destroyed, once it no longer waits.
  void forget(Sleeper& sleeper);
  // Chooses the descriptors that the next poll() checks.
  void pollNext(PollScope next);
  uint64_t now() const;  // at most a microsecond off
  Status joinGroup(const Gid& group, uint32_t interface) override;
  void leaveGroup(const Gid& group, uint32_t interface) override;

  // Replies to the event `observed`. No bytes: this process gives no report.
  void replyToObserver(uint32_t number, const void* text, uint64_t bytes);

  static const std::vector<const char*>& counterNames();
  std::vector<uint64_t> counters();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
