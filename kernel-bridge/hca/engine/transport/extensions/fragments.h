// Packets in fragments, between two peers that have agreed on it (extensions::kFragments), for paths on which large
// packets vanish: a router drops packets longer than its MTU without reporting it, or an interface's MTU has been
// reduced. The packets of a connection have the length given by its MTU (IBA 1 §9.7.4.1.6), so a packet that is too
// long for the path is sent in several datagrams, and processed once it is complete. To the transport, a lost fragment
// is a lost packet.
//
// A fragment has a BTH with an opcode that the standard leaves to manufacturers, and the QPN and PSN of the packet; the
// pad count is replaced by the kind of the packet. It is followed by the fragment's position in the packet and the
// packet's length, 16 bits each, and by bytes of the packet, from its BTH to its pad. Fragments may arrive in any
// order, and missing ones may arrive with a retransmission of the packet.
//
// The size follows the method of RFC 8899: a packet that did not get through whole is sent in fragments of 1024 bytes,
// then of 256. Once these arrive, a packet of the next larger size serves as the probe. It carries data; if it is lost,
// it is retransmitted in fragments. After three consecutive lost probes the next one follows after 5 seconds, later
// after up to 10 minutes.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Fragments : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) { return (qp.attributes.extensions & extensions::kFragments) != 0 && !qp.local; }

  // ── Sender
  // The oldest packet has been sent several times without a response: if it is long, that may be the reason.
  void suspect(Qp& qp);
  // The same for a response with this much payload, once it has been re-requested `often` times.
  void onRepeated(Qp& qp, Resource& of, uint32_t psn, uint32_t payload, uint32_t often);
  // Sends it over UDP: whole, or in fragments. False: it could not be sent.
  bool send(Qp& qp, const Path& path, OutPacket& whole);

  // ── Receiver
  // Takes a fragment. Returns the packet that it completes, of `*length` bytes; null: none.
  const uint8_t* receive(const PacketMeta& meta, const wire::Bth& bth, const uint8_t* bytes, uint32_t bytesLength,
                         uint32_t* length);

 private:
  static constexpr uint32_t kPlaceBytes = 4;  // after the BTH

  static FragmentPath& path(Qp& qp);
  void narrow(Qp& qp, bool again, uint32_t payload);
  uint32_t sizeFor(Qp& qp, const OutPacket& whole);
  OutPacket part_;
};

}  // namespace nd
