#include "host/capture.h"

#include <cerrno>

#include "platform/os.h"

namespace nd {
namespace {

// pcapng (draft-ietf-opsawg-pcapng): block types and options.
constexpr uint32_t kSectionHeader = 0x0A0D0D0A, kInterface = 1, kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint32_t kLinkTypeRaw = 101;  // starts with the IP header
constexpr uint16_t kIfName = 2, kIfTsResolution = 9, kPacketFlags = 2;
constexpr uint8_t kNanoseconds = 9;

std::string expand(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size(); i++) {
    if (path[i] == '%' && i + 1 < path.size() && path[i + 1] == 'p') {
      out += std::to_string(ownProcessId());
      i++;
    } else {
      out += path[i];
    }
  }
  return out;
}

// Returns the name of the n-th file for a path: x.pcapng, x-2.pcapng, and so on.
std::string numbered(std::string path, uint32_t number) {
  if (number == 1) return path;
  const size_t folder = path.find_last_of("/\\"), dot = path.rfind('.');
  const bool hasSuffix = dot != std::string::npos && (folder == std::string::npos || dot > folder + 1);
  path.insert(hasSuffix ? dot : path.size(), "-" + std::to_string(number));
  return path;
}

uint32_t option(uint16_t code, uint16_t length) { return code | static_cast<uint32_t>(length) << 16; }

}  // namespace

Capture::~Capture() { close(); }

int Capture::open(const std::string& path) {
  if (path == path_) return error_;
  close();
  error_ = 0;
  if (path.empty()) return 0;
  const std::string name = expand(path);
  int error = EEXIST;
  for (uint32_t number = 1; error == EEXIST && number <= kMostFiles; number++)
    error = createFile(numbered(name, number), &file_);
  if (error != 0) return error;
  path_ = path;
  buffer_.clear();
  buffer_.reserve(kBufferBytes);

  append32(kSectionHeader);
  append32(28);
  append32(kByteOrderMagic);
  append32(1);  // version 1.0
  const uint64_t unknownLength = UINT64_MAX;
  append(&unknownLength, 8);
  append32(28);

  const uint32_t interfaceBytes = 16 + 4 + 12 + 4 + 4 + 4 + 4;
  append32(kInterface);
  append32(interfaceBytes);
  append32(kLinkTypeRaw);
  append32(0);  // no snap length
  append32(option(kIfName, 11));
  append("softhca/rdm", 11);
  append("", 1);
  append32(option(kIfTsResolution, 1));
  append32(kNanoseconds);
  append32(0);  // end of options
  append32(interfaceBytes);
  flush();
  if (error_ != 0) path_.clear();
  return error_;
}

void Capture::close() {
  path_.clear();
  if (!file_.valid()) return;
  flush();
  file_.reset();
}

void Capture::append(const void* data, size_t length) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  buffer_.insert(buffer_.end(), bytes, bytes + length);
}

void Capture::write(Direction direction, const IcrcHeaders& headers, const IpVariant& variant, const uint8_t* bth,
                    uint32_t length) {
  if (!file_.valid()) return;
  uint8_t head[48];
  const auto headBytes = static_cast<uint32_t>(buildHeaders(head, headers, length, false, variant));
  const uint32_t packet = headBytes + length, padded = (packet + 3) & ~3u;
  const uint32_t block = 28 + padded + 8 + 4 + 4;
  if (buffer_.size() + block > kBufferBytes) flush();
  const uint64_t stamp = wallClockNs();
  append32(kEnhancedPacket);
  append32(block);
  append32(0);  // interface
  append32(static_cast<uint32_t>(stamp >> 32));
  append32(static_cast<uint32_t>(stamp));
  append32(packet);
  append32(packet);
  append(head, headBytes);
  append(bth, length);
  append("\0\0\0", padded - packet);
  append32(option(kPacketFlags, 4));
  append32(static_cast<uint32_t>(direction));
  append32(0);
  append32(block);
}

void Capture::scheduleFlush(uint64_t now) {
  if (flushDue_ == UINT64_MAX && !buffer_.empty()) flushDue_ = now + kFlushAfterNs;
}

void Capture::flush() {
  flushDue_ = UINT64_MAX;
  if (file_.valid()) error_ = writeFile(file_.get(), buffer_.data(), buffer_.size());
  // A full disk ends the capture but not the traffic. A truncated block would make the file unreadable anyway.
  if (error_ != 0) file_.reset();
  buffer_.clear();
}

}  // namespace nd
