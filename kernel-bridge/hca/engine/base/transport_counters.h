// All counters of the transport in one table. They have the names of `rdma statistic` where that command knows them.
#pragma once
#include <array>
#include <cstdint>

namespace nd {

#define ND_ENGINE_COUNTERS(X)                                                                \
  X(sentPackets, "sent_pkts")                                                                \
  X(receivedPackets, "rcvd_pkts")                                                            \
  X(sentBytes, "sent_bytes")                                                                 \
  X(receivedBytes, "rcvd_bytes")                                                             \
  X(sendFailures, "send_err") /* the link could not send the packet */                       \
  X(duplicateRequests, "duplicate_request")                                                  \
  X(outOfSequence, "out_of_seq_request")                                                     \
  X(keptPackets, "kept_pkts")   /* kept behind a gap until it is closed */                   \
  X(unkept, "unkept_pkts")      /* dropped: too far behind a gap */                          \
  X(sentReports, "sent_report") /* acknowledgements that list the kept packets */            \
  X(receivedReports, "rcvd_report")                                                          \
  X(foundLost, "lost_pkts")   /* according to the peer's reports */                          \
  X(blackHoles, "black_hole") /* long packets seem to vanish: sent in fragments */           \
  X(sentFragments, "sent_fragment")                                                          \
  X(receivedFragments, "rcvd_fragment")                                                      \
  X(sentRnrNaks, "send_rnr_err")                                                             \
  X(receivedRnrNaks, "rcvd_rnr_err")                                                         \
  X(lateReceives, "late_receive")            /* a message waited; its sender was notified */ \
  X(shortenedRnrWaits, "rnr_wait_shortened") /* the peer announced a late receive */         \
  X(receivedSequenceNaks, "rcvd_seq_err")                                                    \
  X(sentFatalNaks, "send_fatal_nak")                                                         \
  X(receivedFatalNaks, "rcvd_fatal_nak")                                                     \
  X(responseGaps, "completer_retry_err") /* READ or ATOMIC response lost */                  \
  X(timeouts, "ack_timeout")                                                                 \
  X(retriesExceeded, "retry_exceeded_err")                                                   \
  X(rnrExceeded, "retry_rnr_exceeded_err")                                                   \
  X(acksCoalesced, "ack_deferred")                                                           \
  X(acksCarried, "ack_carried")   /* carried by packets of the local link */                 \
  X(sentFast, "sent_fast")        /* small packets sent on the fast path */                  \
  X(directWrites, "direct_write") /* executed by this side in the peer's memory */           \
  X(directReads, "direct_read")                                                              \
  X(directAtomics, "direct_atomic")                                                          \
  X(directRefused, "direct_refused")   /* no published key allows it: sent as a request */   \
  X(directUnmapped, "direct_unmapped") /* the peer's memory is not mapped yet */             \
  X(directEvicted, "direct_evicted")   /* the peer withdrew its memory meanwhile */          \
  X(receivedFast, "rcvd_fast")         /* small packets from the wire, on the fast path */   \
  X(retransmitted, "retransmitted_pkts")                                                     \
  X(keepAlives, "keep_alive")                                                                \
  X(malformed, "malformed_pkts")                                                             \
  X(unknownQp, "unknown_qp")                                                                 \
  X(wrongPkey, "bad_pkey")                                                                   \
  X(wrongAddress, "wrong_address")                                                           \
  X(wrongState, "wrong_qp_state")                                                            \
  X(unknownOpcode, "unknown_opcode")                                                         \
  X(wrongTransport, "wrong_transport")  /* such as RC to a UC QP */                          \
  X(droppedMessages, "dropped_message") /* unreliable transport: lost or refused */          \
  X(wrongQkey, "bad_qkey")                                                                   \
  X(staleResponses, "stale_response")                                                        \
  X(congestionNotifications, "rcvd_cnp")                                                     \
  X(congestionMarked, "rcvd_ecn_marked")                                                     \
  X(congestionNotificationsSent, "sent_cnp")                                                 \
  X(tailProbes, "tail_probe")            /* retransmitted before the timeout */              \
  X(lateAckRequests, "late_ack_request") /* for packets sent without AckReq */               \
  X(remoteAccessErrors, "req_remote_access_errors")                                          \
  X(remoteInvalidRequests, "req_remote_invalid_request")                                     \
  X(localProtectionErrors, "local_protection_err")                                           \
  X(ringFaults, "ring_fault")                                                                \
  X(cqOverruns, "cq_overrun")                                                                \
  X(flushed, "flushed_wqe")                                                                  \
  X(qpErrors, "qp_fatal")                                                                    \
  X(peersLost, "peer_lost")                                                                  \
  X(dreqsOnExitSent, "dreq_on_exit_sent")                                                    \
  X(cqEvents, "cq_event")                                                                    \
  X(pollerYields, "poller_yield")

struct Counters {
#define X(field, name) uint64_t field = 0;
  ND_ENGINE_COUNTERS(X)
#undef X
};

}  // namespace nd
