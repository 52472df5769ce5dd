#include "platform/routes.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/ip.h"
#include "platform/local_addresses.h"
#include "platform/unique_fd.h"

namespace nd {
namespace {

// A netlink request with its attributes, or a reply.
struct Message {
  nlmsghdr head;
  rtmsg route;
  uint8_t attributes[2048];
};

class RouteRequest {
 public:
  explicit RouteRequest(bool v4) : v4_(v4) {
    message.head.nlmsg_type = RTM_GETROUTE;
    message.head.nlmsg_flags = NLM_F_REQUEST;
    message.head.nlmsg_len = NLMSG_LENGTH(sizeof message.route);
    message.route.rtm_family = v4 ? AF_INET : AF_INET6;
  }
  void add(uint16_t type, const void* data, uint16_t length) {
    uint8_t* const at = reinterpret_cast<uint8_t*>(&message) + NLMSG_ALIGN(message.head.nlmsg_len);
    const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(length)), type};
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), data, length);
    message.head.nlmsg_len = static_cast<uint32_t>(NLMSG_ALIGN(message.head.nlmsg_len) + RTA_ALIGN(RTA_LENGTH(length)));
  }
  void addAddress(uint16_t type, const Gid& gid) {
    add(type, gid.raw.data() + (v4_ ? 12 : 0), v4_ ? 4 : 16);
    (type == RTA_DST ? message.route.rtm_dst_len : message.route.rtm_src_len) = v4_ ? 32 : 128;
  }

  Message message{};

 private:
  const bool v4_;
};

// Rules may match protocol and port.
RouteRequest requestOf(const RouteQuery& query) {
  RouteRequest request(query.destination.isV4());
  request.addAddress(RTA_DST, query.destination);
  if (query.source != Gid{}) request.addAddress(RTA_SRC, query.source);
  if (query.interface != 0) request.add(RTA_OIF, &query.interface, sizeof query.interface);
  const uint8_t protocol = IPPROTO_UDP;
  const uint16_t port = htons(kRocePort);
  request.add(RTA_IP_PROTO, &protocol, sizeof protocol);
  request.add(RTA_DPORT, &port, sizeof port);
  return request;
}

Status statusOfRoute(int error) {
  switch (error) {
    case ENOBUFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return statusOfLack(error);
    default: return Status::kNetworkUnreachable;
  }
}

uint32_t mtuOf(const rtattr* metrics) {
  int left = static_cast<int>(RTA_PAYLOAD(metrics));
  for (const auto* one = static_cast<const rtattr*>(RTA_DATA(metrics)); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    uint32_t value = 0;
    if (one->rta_type != RTAX_MTU || RTA_PAYLOAD(one) < sizeof value) continue;
    std::memcpy(&value, RTA_DATA(one), sizeof value);
    return value;
  }
  return 0;
}

void readAttribute(const rtattr* attribute, bool v4, Route* out) {
  const void* const data = RTA_DATA(attribute);
  if (attribute->rta_type == RTA_OIF && RTA_PAYLOAD(attribute) >= sizeof out->interface) {
    std::memcpy(&out->interface, data, sizeof out->interface);
  } else if (attribute->rta_type == RTA_METRICS) {
    out->mtu = mtuOf(attribute);
  } else if (attribute->rta_type == RTA_PREFSRC && RTA_PAYLOAD(attribute) >= (v4 ? 4u : 16u)) {
    if (v4) {
      uint32_t address;
      std::memcpy(&address, data, sizeof address);
      out->source = gidOfIpv4(address);
    } else {
      std::memcpy(out->source.raw.data(), data, 16);
    }
  }
}

Status readReply(const Message& reply, size_t length, bool v4, Route* out) {
  if (length >= NLMSG_LENGTH(sizeof(nlmsgerr)) && reply.head.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    std::memcpy(&error, NLMSG_DATA(&reply.head), sizeof error);
    return statusOfRoute(-error.error);
  }
  if (length < sizeof reply.head + sizeof reply.route || reply.head.nlmsg_type != RTM_NEWROUTE)
    return Status::kUnsuccessful;
  if (reply.route.rtm_type == RTN_BROADCAST) return Status::kNetworkUnreachable;
  int left = static_cast<int>(length - offsetof(Message, attributes));
  for (const auto* one = reinterpret_cast<const rtattr*>(reply.attributes); RTA_OK(one, left);
       one = RTA_NEXT(one, left))
    readAttribute(one, v4, out);
  return out->interface != 0 && out->source != Gid{} ? Status::kSuccess : Status::kNetworkUnreachable;
}

}  // namespace

Status findRoute(const RouteQuery& query, Route* out) {
  const bool v4 = query.destination.isV4();
  if (query.source != Gid{} && query.source.isV4() != v4) return Status::kInvalidParameter;
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return statusOfRoute(errno);
  const RouteRequest request = requestOf(query);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(socket.get(), &request.message, request.message.head.nlmsg_len, 0,
             reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
    return statusOfRoute(errno);
  // The reply is available as soon as the request has been accepted.
  Message reply{};
  const ssize_t got = recv(socket.get(), &reply, sizeof reply, MSG_DONTWAIT);
  if (got < 0) return statusOfRoute(errno);
  *out = Route{query.source, 0, 0};
  return readReply(reply, static_cast<size_t>(got), v4, out);
}

}  // namespace nd
