// Translates the errno of a call to rdma-core or to the kernel into a status for the program.
#include <cerrno>

#include "verbs/objects.h"

namespace nd::verbs {

Status statusOf(int error) {
  switch (error < 0 ? -error : error) {
    case 0: return Status::kSuccess;
    case EINVAL: return Status::kInvalidParameter;
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOSPC: return statusOfLack(error < 0 ? -error : error);
    case EBUSY: return Status::kDeviceBusy;
    case EPERM:
    case EACCES: return Status::kAccessDenied;
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT: return Status::kNotSupported;
    case ENODEV:
    case ENXIO:
    case EIO: return Status::kDeviceRemoved;
    case EFAULT: return Status::kAccessViolation;
    case EADDRINUSE: return Status::kAddressAlreadyExists;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT: return Status::kInvalidAddress;
    case ENETUNREACH: return Status::kNetworkUnreachable;
    case EHOSTUNREACH: return Status::kHostUnreachable;
    case ETIMEDOUT: return Status::kIoTimeout;
    default: return Status::kUnsuccessful;
  }
}

int32_t statusOfEvent(int status) {
  if (status >= 0) return status;
  switch (-status) {
    // Drivers of iWARP devices report these if TCP, MPA or the peer has ended the connection.
    case EIO:
    case EPROTO:
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED: return static_cast<int32_t>(Status::kConnectionAborted);
    default: return static_cast<int32_t>(statusOf(status));
  }
}

std::string openingHelp(int error, const char* module) {
  if (error == EACCES || error == EPERM)
    return "; this user needs read and write access: use a udev rule, or docker run --device=/dev/infiniband for a "
           "container";
  if (error == ENOENT || error == ENODEV || error == ENXIO)
    return std::string("; it is provided by the kernel module ") + module +
           ", and is passed to a container by docker run --device=/dev/infiniband";
  return "";
}

}  // namespace nd::verbs
