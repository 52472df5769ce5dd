// Packets in fragments, between two ends that have agreed on it (extensions::kFragments), for paths on which large
// packets vanish: a router drops what is longer than its MTU and reports nothing, or an interface's MTU has become
// smaller. The packets of a connection have the length that its MTU says (IBA 1 §9.7.4.1.6), so a packet that is too
// long for the path leaves in several datagrams, and is looked at when it is whole. To the transport a lost fragment is
// a lost packet.
//
// A fragment has a BTH with an opcode that the standard leaves to manufacturers, and the QPN and PSN of the packet; in
// place of a pad count it has the kind of the packet. Then follow its place in the packet and the packet's length, 16
// bits each; then bytes of the packet, from its BTH to its pad. Fragments come in any order, and what is lost of a
// packet may come with its repetition.
//
// The size follows RFC 8899's method: a packet that did not get through whole is sent in fragments of 1024 bytes, then
// of 256. Once these arrive, a packet of the next larger size is the probe. It is data; when it is lost it is sent
// again in fragments. After three lost ones in a row the next one follows after 5 seconds, later up to 10 minutes.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Fragments : public Role {
 public:
  using Role::Role;
  static bool agreed(const Qp& qp) { return (qp.attributes.extensions & extensions::kFragments) != 0 && !qp.local; }

  // ── Sender
  // The oldest packet has been sent several times without an answer: if it is a long one, that may be the reason.
  void suspect(Qp& qp);
  // An answer of so much payload is asked for again. The same, when it has been so often.
  void onRepeated(Qp& qp, Resource& of, uint32_t psn, uint32_t payload, uint32_t often);
  // By the wire: whole, or in fragments. False: it could not be sent.
  bool send(Qp& qp, const Path& path, OutPacket& whole);

  // ── Receiver
  // A fragment. The packet that it completes, of `*length` bytes; null: there is none.
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
