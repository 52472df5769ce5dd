// Sends packets in fragments, between two peers that have agreed on it (extensions::kFragments). This is for paths on
// which large packets vanish, because a router drops packets longer than its MTU without reporting it, or an
// interface's MTU has been reduced. The packets of a connection have the length given by its MTU (IBA 1 §9.7.4.1.6). A
// packet that is too long for the path is therefore sent in several datagrams, and processed once it is complete. To
// the transport, a lost fragment is a lost packet.
//
// A fragment begins with a BTH. Its opcode is one that the standard leaves to manufacturers, its QPN and PSN are those
// of the packet, and the kind of the packet replaces the pad count. The BTH is followed by the fragment's position in
// the packet and the packet's length, 16 bits each, and by bytes of the packet, from its BTH to its pad. Fragments may
// arrive in any order, and missing ones may arrive with a retransmission of the packet.
//
// The size is chosen by the method of RFC 8899. A packet that did not get through whole is sent in fragments of 1024
// bytes, then of 256. Once these arrive, a packet of the next larger size serves as the probe. It carries data, and is
// retransmitted in fragments if it is lost. After three consecutive lost probes the next one follows after 5 seconds,
// and later ones after up to 10 minutes.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Fragments : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) { return (qp.attributes.extensions & extensions::kFragments) != 0 && !qp.local; }

  // ── Sender
  // Called when the oldest packet has been sent several times without a response. If it is long, that may be the
  // reason.
  void suspect(Qp& qp);
  // Does the same for a response with this much payload that has been re-requested `often` times.
  void onRepeated(Qp& qp, Resource& of, uint32_t psn, uint32_t payload, uint32_t often);
  // Sends the packet over UDP, whole or in fragments. Returns false if it could not be sent.
  bool send(Qp& qp, const Path& path, OutPacket& whole);

  // ── Receiver
  // Takes a fragment. Returns the packet that it completes, of `*length` bytes, or null.
  const uint8_t* receive(const PacketMeta& meta, const wire::Bth& bth, const uint8_t* bytes, uint32_t bytesLength,
                         uint32_t* length);

 private:
  static constexpr uint32_t kPlaceBytes = 4;  // bytes after the BTH

  static FragmentPath& path(Qp& qp);
  void narrow(Qp& qp, bool again, uint32_t payload);
  uint32_t sizeFor(Qp& qp, const OutPacket& whole);
  OutPacket part_;
};

}  // namespace nd
