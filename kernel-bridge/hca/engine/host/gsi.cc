#include "host/gsi.h"

#include "base/mad.h"

namespace nd {
namespace {

// The field of a message that identifies its addressee.
enum class Route : uint8_t { kNone, kService, kRemoteId, kRequestId };
constexpr Route kRoutes[] = {
    Route::kService,    // REQ
    Route::kRemoteId,   // MRA
    Route::kRemoteId,   // REJ
    Route::kRemoteId,   // REP
    Route::kRemoteId,   // RTU
    Route::kRemoteId,   // DREQ
    Route::kRemoteId,   // DREP
    Route::kService,    // SIDR_REQ
    Route::kRequestId,  // SIDR_REP
    Route::kNone,       // LAP: no alternate paths on RoCE
    Route::kNone,       // APR
};

constexpr KernelId kLastKernel = 63;

Frame madFrame(const PacketMeta& meta, const uint8_t* bth) {
  Frame frame;
  frame.kind = FrameKind::kMad;
  frame.meta = meta;
  frame.body = bth;
  frame.bodyLength = mad::kPacketBytes;
  return frame;
}

}  // namespace

bool Gsi::accepts(const uint8_t* bth, uint32_t length) {
  const wire::Bth b = wire::parseBth(bth);
  const bool packet = length == mad::kPacketBytes && b.opcode == wire::kOpUdSendOnly && b.pad == 0 && b.version == 0 &&
                      wire::parseDeth(bth + wire::kBthBytes).qkey == wire::kGsiQkey &&
                      bth[mad::kPacketMadOffset + mad::kBaseVersion] == 1;
  if (!packet) {
    counters_.add(HostCounter::kMadsMalformed);
    return false;
  }
  // The MAD has another class. A Send requires no response (IBA 1 §13.4.5), and Linux sends none either.
  const uint8_t* m = bth + mad::kPacketMadOffset;
  const bool ours = m[mad::kClass] == mad::kCmClass && m[mad::kClassVersion] == mad::kCmClassVersion &&
                    m[mad::kMethod] == mad::kMethodSend;
  if (!ours) counters_.add(HostCounter::kMadsForeign);
  return ours;
}

void Gsi::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (accepts(bth, length)) route(meta, bth, true);
}

void Gsi::onHandedOver(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (accepts(bth, length)) route(meta, bth, false);
}

void Gsi::route(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver) {
  if (engine_ == nullptr) return;
  const uint8_t* m = bth + mad::kPacketMadOffset;
  const uint8_t* message = m + mad::kMessage;
  const uint32_t index = mad::attribute(m) - mad::kFirstAttribute;
  switch (index < sizeof kRoutes / sizeof kRoutes[0] ? kRoutes[index] : Route::kNone) {
    case Route::kService: return routeByService(meta, bth, mayHandOver);
    case Route::kRequestId: return routeById(meta, bth, wire::load32(message + mad::kRequestId), mayHandOver);
    case Route::kRemoteId: {
      const uint32_t id = wire::load32(message + mad::kRemoteCommId);
      // An active side that abandoned its REQ does not know the id of this side. The CA GUID in the ARI identifies the
      // connection, and only kernels know these GUIDs.
      const bool withdrawn = id == 0 && mad::attribute(m) == mad::kRej &&
                             wire::load16(message + mad::kRejReason) == mad::kRejReasonTimeout;
      if (withdrawn) return toEveryone(meta, bth, mayHandOver);
      return routeById(meta, bth, id, mayHandOver);
    }
    case Route::kNone: counters_.add(HostCounter::kMadsMalformed); return;
  }
}

void Gsi::routeByService(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver) {
  const uint64_t serviceId = wire::load64(bth + mad::kPacketMadOffset + mad::kMessage + mad::kServiceId);
  const auto port = static_cast<uint16_t>(serviceId);
  if ((serviceId >> 32) == 0) {
    const auto service = static_cast<uint32_t>(serviceId >> 16);
    const KernelId own = ports_.find(service, port, meta.destination);
    if (own != 0) return toKernel(own, meta, bth);
    using HandOver = RdmaPorts::HandOver;
    const auto handed = mayHandOver
                            ? ports_.handOver(service, port, meta.destination, madFrame(meta, bth), clock_.now())
                            : HandOver::kNoOwner;
    if (handed == HandOver::kDone) return counters_.add(HostCounter::kMadsHandedOver);
    if (handed == HandOver::kLacking) {
      counters_.add(HostCounter::kSlotNoDescriptor);
      lacked_ = true;
      return;
    }
    // A rejection could be wrong, so none is sent. A peer that still needs the connection retransmits its request.
    if (handed == HandOver::kUnsure) return counters_.add(HostCounter::kMadsUnlooked);
  }
  toKernel(0, meta, bth);
}

void Gsi::routeById(const PacketMeta& meta, const uint8_t* bth, uint32_t id, bool mayHandOver) {
  const uint32_t slot = id >> 24;
  if (slot == slots_.slot()) return toKernel(id >> 18 & 0x3f, meta, bth);
  if (mayHandOver && slot < Slots::kMax) {
    const int error = slots_.send(slot, madFrame(meta, bth));
    if (error == 0) return counters_.add(HostCounter::kMadsHandedOver);
    if (isDescriptorLack(error)) {
      lacked_ = true;
      return;
    }
  }
  toKernel(0, meta, bth);
}

void Gsi::toEveryone(const PacketMeta& meta, const uint8_t* bth, bool mayHandOver) {
  if (mayHandOver) slots_.sendToOthers(madFrame(meta, bth), clock_.now());
  for (KernelId kernel = 1; kernel <= kLastKernel; kernel++)
    if (engine_->kernelPort(kernel) != nullptr) toKernel(kernel, meta, bth);
}

void Gsi::toKernel(KernelId kernel, const PacketMeta& meta, const uint8_t* bth) {
  KernelPort* port = kernel != 0 ? engine_->kernelPort(kernel) : nullptr;
  const bool addressed = port != nullptr;
  if (!addressed) {
    kernel = engine_->anyKernel();
    if (kernel != 0) port = engine_->kernelPort(kernel);
  }
  if (port == nullptr) {
    counters_.add(HostCounter::kMadsUnroutable);
    return;
  }
  const uint16_t pkey = wire::parseBth(bth).pkey;
  if (!engine_->acceptsGsiPkey(kernel, meta.destination, pkey)) return;
  counters_.add(HostCounter::kMadsReceived);
  port->onMad(meta, addressed, pkey, bth + mad::kPacketMadOffset);
}

}  // namespace nd
