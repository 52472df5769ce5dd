// Writes the packets of this HCA to a pcapng file that Wireshark can decode: raw IP packets with rebuilt headers and
// their ICRC (or the ICRC they would have had, for packets that stayed on the host).
#pragma once
#include <string>
#include <vector>
#include "base/icrc.h"
#include "platform/unique_fd.h"

namespace nd {

class Capture {
 public:
  enum class Direction : uint32_t { kInbound = 1, kOutbound = 2 };

  Capture() = default;
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Starts writing to a new file at `path`, in which %p stands for the process id; "" stops the capture. Passing the
  // same path again has no effect. An existing file is never overwritten: the first free name of x.pcapng, x-2.pcapng,
  // … is used. Returns 0 or an errno, EEXIST if all kMostFiles names are taken. For the path in force, returns the
  // errno that ended its capture.
  int open(const std::string& path);
  void close();
  bool active() const { return file_.valid(); }

  // `bth`: BTH to ICRC, `length` bytes.
  void write(Direction direction, const IcrcHeaders& headers, const IpVariant& variant, const uint8_t* bth,
             uint32_t length);
  // Returns when flush() is due (by Clock::now), or UINT64_MAX if nothing is buffered. `now`: when the oldest byte was
  // written.
  uint64_t flushDue() const { return flushDue_; }
  void scheduleFlush(uint64_t now);
  void flush();
  // Returns the errno that ended the capture, or 0.
  int error() const { return error_; }

 private:
  static constexpr uint32_t kMostFiles = 1000;
  static constexpr size_t kBufferBytes = 256 * 1024;
  static constexpr uint64_t kFlushAfterNs = 100'000'000;
  void append(const void* data, size_t length);
  void append32(uint32_t value) { append(&value, 4); }

  std::string path_;
  UniqueFd file_;
  uint64_t flushDue_ = UINT64_MAX;
  int error_ = 0;
  std::vector<uint8_t> buffer_;
};

}  // namespace nd
