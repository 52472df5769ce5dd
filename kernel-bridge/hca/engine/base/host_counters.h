// The counters of the host side. One table defines the enumeration, the names and the array.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

namespace nd {

#define ND_HOST_COUNTERS(X)                                                                                \
  X(kWireRxPackets, "wire_rx_packets")  /* datagrams received on port 4791 */                              \
  X(kWireTxPackets, "wire_tx_packets")  /* packets passed to a UDP socket */                               \
  X(kWireRxShort, "wire_rx_bad_length") /* too short, too long, or not a multiple of 4 */                  \
  X(kIcrcErrors, "rx_icrc_errors")                                                                         \
  X(kRawUnsegmented, "rx_raw_unsegmented")         /* lost: joined packets; exact ICRC only */             \
  X(kRawUnwitnessed, "rx_raw_unwitnessed")         /* lost: not verifiable; exact ICRC only */             \
  X(kRxNotLocal, "rx_not_local")                   /* broadcast, or not an address of this host */         \
  X(kIpv4IdSolved, "rx_ipv4_id_solved")            /* ICRC correct with an ID other than 0/DF */           \
  X(kTxUnroutable, "tx_unroutable")                /* no socket and no process for the packet */           \
  X(kTxErrors, "tx_errors")                        /* the socket refused the packet */                     \
  X(kTxBufferFull, "tx_buffer_full")               /* lost: the socket's buffer was full */                \
  X(kFlowsOpened, "tx_flow_opened")                /* connected sockets for sending */                     \
  X(kFlowsRefused, "tx_flow_refused")              /* the OS does not report what they need */             \
  X(kPeerSocketsOpened, "rx_peer_socket_opened")   /* sockets connected to one sender */                   \
  X(kPeerSocketsRefused, "rx_peer_socket_refused") /* closed, or could not be opened */                    \
  X(kFlowsMiscounted, "tx_flow_id_lost")           /* closed: an IPv4 ID differed from the count */        \
  X(kTxTooLong, "tx_too_long")                                                                             \
  X(kPortTaken, "wire_port_taken")    /* port 4791 in use, where processes cannot share it */              \
  X(kRxMisdirected, "rx_misdirected") /* for another slot of this host */                                  \
  X(kGroupCopies, "rx_group_copies")  /* duplicate of a datagram to a group */                             \
  X(kForwardedOut, "slot_tx_forwarded")                                                                    \
  X(kForwardedIn, "slot_rx_forwarded")                                                                     \
  X(kUnknownSlot, "slot_unknown")      /* no process owns the addressed slot */                            \
  X(kSlotQueueFull, "slot_queue_full") /* lost: the peer process does not read */                          \
  X(kSlotBadFrames, "slot_bad_frames")                                                                     \
  X(kSlotRefused, "slot_refused_connections") /* another user's process */                                 \
  X(kSlotNoDescriptor, "slot_no_descriptor")  /* no descriptor to accept a connection */                   \
  X(kSlotPeersGone, "slot_peers_gone")                                                                     \
  X(kLocalPackets, "local_packets") /* to this process, not over the network */                            \
  X(kLocalQueueFull, "local_queue_full")                                                                   \
  X(kLocalPairsUp, "local_link_pairs_up")             /* pairs of processes that came up */                \
  X(kLocalPairsEnded, "local_link_pairs_ended")       /* of those, pairs that ended */                     \
  X(kLocalBroken, "local_link_broken")                /* of those, ended because of invalid data */        \
  X(kLocalRefusedOption, "local_link_refused_option") /* an option requires the wire */                    \
  X(kLocalRefusedUser, "local_link_refused_user")     /* another user's process */                         \
  X(kLocalRefusedSystem, "local_link_refused_system") /* no shared memory, no descriptors */               \
  X(kLocalRefusedSilent, "local_link_refused_silent") /* the peer did not reply in time */                 \
  X(kLocalTx, "local_link_tx_packets")                                                                     \
  X(kLocalRx, "local_link_rx_packets")                                                                     \
  X(kLocalPulled, "local_link_single_copy_bytes")      /* copied once, from the sender's memory */         \
  X(kLocalMappedBytes, "local_link_mapped_copy_bytes") /* of those, another process's allocate() memory */ \
  X(kLocalMaps, "local_link_memory_mapped")            /* peers' allocate() memory that was mapped */      \
  X(kLocalMapsEnded, "local_link_memory_unmapped")     /* of that, released by the peer */                 \
  X(kLocalMapsRefused, "local_link_memory_refused")    /* not mapped: too much, or not trusted */          \
  X(kDirectImpossible, "direct_impossible")            /* the OS cannot publish keys read-only */          \
  X(kDirectUnpublished, "direct_unpublished")          /* keys for which the table had no slot */          \
  X(kDirectWaits, "direct_waits")                      /* a withdrawal waited for a peer's access */       \
  X(kDirectEvictions, "direct_evictions")              /* a peer's access did not end: evicted */          \
  X(kDirectUnmoved, "direct_memory_not_moved")         /* no memory to reclaim it: retried later */        \
  X(kDirectReclaimed, "direct_memory_reclaimed")       /* reclaimed from an evicted peer */                \
  X(kLocalPullChanged, "local_link_pull_changed")      /* re-requested: memory was released */             \
  X(kLocalPullFailed, "local_link_pull_failed")                                                            \
  X(kLocalStalls, "local_link_ring_full")                                                                  \
  X(kLocalWakes, "local_link_wakes") /* wake-ups of a sleeping peer */                                     \
  X(kSteeringProbes, "steering_probes")                                                                    \
  X(kSteeringUpdates, "steering_updates")                                                                  \
  X(kMadsSent, "mad_tx")                                                                                   \
  X(kMadsReceived, "mad_rx")                                                                               \
  X(kMadsMalformed, "mad_rx_malformed")                                                                    \
  X(kMadsForeign, "mad_rx_foreign")          /* not a Send of CM's class and version */                    \
  X(kMadsHandedOver, "mad_handed_over")      /* passed to another process on this host */                  \
  X(kMadsUnlooked, "mad_dropped_no_service") /* lost: too many for unknown services */                     \
  X(kMadsUnroutable, "mad_unroutable")       /* no kernel for the MAD */                                   \
  X(kFaultDropped, "fault_dropped")                                                                        \
  X(kFaultDuplicated, "fault_duplicated")                                                                  \
  X(kFaultReordered, "fault_reordered")                                                                    \
  X(kFaultCorrupted, "fault_corrupted")                                                                    \
  X(kFaultMadsDropped, "fault_mads_dropped")                                                               \
  X(kCaptureErrors, "capture_errors")

enum class HostCounter : uint32_t {
#define X(name, text) name,
  ND_HOST_COUNTERS(X)
#undef X
      kCount
};

class HostCounters {
 public:
  void add(HostCounter counter, uint64_t n = 1) {
    values_[static_cast<uint32_t>(counter)].fetch_add(n, std::memory_order_relaxed);
  }
  // A cheaper add(), for events that are counted with every packet. Requires the engine's lock, and a counter that is
  // never passed to add().
  void bump(HostCounter counter, uint64_t n = 1) {
    auto& value = values_[static_cast<uint32_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get(HostCounter counter) const {
    return values_[static_cast<uint32_t>(counter)].load(std::memory_order_relaxed);
  }
  static const std::vector<const char*>& names() {
    static const auto* list = new std::vector<const char*>{
#define X(name, text) text,
        ND_HOST_COUNTERS(X)
#undef X
    };
    return *list;
  }
  std::vector<uint64_t> values() const {
    std::vector<uint64_t> out;
    for (const auto& v : values_) out.push_back(v.load(std::memory_order_relaxed));
    return out;
  }

 private:
  std::atomic<uint64_t> values_[static_cast<uint32_t>(HostCounter::kCount)]{};
};

}  // namespace nd
