#include "wire.h"
#include <cstdio>
#include <deque>
#include <map>
#include "clock.h"
#include "connector.h"
#include "modes.h"
#include "queue-pair.h"

namespace nd2 {

namespace {

std::deque<Frame>& local() {
  static auto& queue = *new std::deque<Frame>;
  return queue;
}
bool delivering = false;

void handle(Frame& frame) {
  switch (frame.head.kind) {
    case FrameKind::Request:
      if (auto* const listener = numbered<Listener>(frame.head.to.id)) return listener->requested(frame);
      return refuse(frame);
    case FrameKind::Abandon: return abandoned(frame.head.from);
    case FrameKind::Reply:
    case FrameKind::Ready:
    case FrameKind::Reject:
    case FrameKind::Disconnect:
    case FrameKind::Disconnected:
      if (auto* const connector = numbered<Connector>(frame.head.to.id)) connector->receive(frame);
      return;
    case FrameKind::Send:
    case FrameKind::Write:
    case FrameKind::Read:
    case FrameKind::Acknowledge:
    case FrameKind::Stop:
      if (auto* const queuePair = numbered<QueuePair>(frame.head.to.id)) return queuePair->receive(frame);
      return replyMissing(frame);
  }
}

void pipeName(char (&name)[80], DWORD process) { snprintf(name, sizeof name, "\\\\.\\pipe\\nd2-standin-%lu", process); }

bool readAll(HANDLE pipe, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    DWORD read = 0;
    if (!ReadFile(pipe, at, static_cast<DWORD>(bytes < 65536 ? bytes : 65536), &read, nullptr) || read == 0)
      return false;
    at += read;
    bytes -= read;
  }
  return true;
}

bool writeAll(HANDLE pipe, const void* from, size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    DWORD written = 0;
    if (!WriteFile(pipe, at, static_cast<DWORD>(bytes < 65536 ? bytes : 65536), &written, nullptr)) return false;
    at += written;
    bytes -= written;
  }
  return true;
}

/// Reads frames of another process without holding the lock, so that a process which writes with its lock held is not
/// blocked for long.
DWORD WINAPI readFrom(void* parameter) {
  const HANDLE pipe = parameter;
  DWORD process = 0;
  if (readAll(pipe, &process, sizeof process)) {
    for (;;) {
      Frame frame;
      if (!readAll(pipe, &frame.head, sizeof frame.head)) break;
      frame.bytes.resize(frame.head.bytes);
      if (!readAll(pipe, frame.bytes.data(), frame.bytes.size())) break;
      soon([frame = std::move(frame)]() mutable { handle(frame); });
    }
    soon([process] {
      if (modes.unreachable == 0) return processGone(process);
      after(modes.rnr, [process] { retriesExhausted(process); });
    });
  }
  CloseHandle(pipe);
  return 0;
}

DWORD WINAPI acceptPipes(void* first) {
  char name[80];
  pipeName(name, GetCurrentProcessId());
  for (HANDLE pipe = first; pipe != INVALID_HANDLE_VALUE;) {
    const bool connected = ConnectNamedPipe(pipe, nullptr) || GetLastError() == ERROR_PIPE_CONNECTED;
    const HANDLE next = CreateNamedPipeA(name, PIPE_ACCESS_INBOUND, PIPE_TYPE_BYTE | PIPE_WAIT,
                                         PIPE_UNLIMITED_INSTANCES, 65536, 65536, 0, nullptr);
    const HANDLE thread = connected ? CreateThread(nullptr, 0, readFrom, pipe, 0, nullptr) : nullptr;
    if (thread != nullptr) CloseHandle(thread);
    else CloseHandle(pipe);
    pipe = next;
  }
  return 0;
}

/// Creates this process's pipe.
void open() {
  static bool opened = false;
  if (std::exchange(opened, true)) return;
  char name[80];
  pipeName(name, GetCurrentProcessId());
  const HANDLE pipe = CreateNamedPipeA(name, PIPE_ACCESS_INBOUND, PIPE_TYPE_BYTE | PIPE_WAIT, PIPE_UNLIMITED_INSTANCES,
                                       65536, 65536, 0, nullptr);
  const HANDLE thread = CreateThread(nullptr, 0, acceptPipes, pipe, 0, nullptr);
  if (thread != nullptr) CloseHandle(thread);
}

/// Pipes to other processes.
std::map<DWORD, HANDLE>& pipes() {
  static auto& all = *new std::map<DWORD, HANDLE>;
  return all;
}

HANDLE pipeTo(DWORD process) {
  const auto known = pipes().find(process);
  if (known != pipes().end()) return known->second;
  char name[80];
  pipeName(name, process);
  for (int i = 0; i < 50; i++) {
    const HANDLE pipe = CreateFileA(name, GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, 0, nullptr);
    if (pipe != INVALID_HANDLE_VALUE) {
      const DWORD own = GetCurrentProcessId();
      if (!writeAll(pipe, &own, sizeof own)) {
        CloseHandle(pipe);
        return INVALID_HANDLE_VALUE;
      }
      pipes()[process] = pipe;
      return pipe;
    }
    // Between two instances of the pipe there is none for a moment.
    if (GetLastError() != ERROR_PIPE_BUSY && GetLastError() != ERROR_FILE_NOT_FOUND) break;
    Sleep(10);
  }
  return INVALID_HANDLE_VALUE;
}

/// Drops a frame. The sender of a request receives IO_TIMEOUT when its retries would be exhausted.
void lose(const Frame& frame) {
  const FrameKind kind = frame.head.kind;
  if (kind != FrameKind::Send && kind != FrameKind::Write && kind != FrameKind::Read) return;
  Frame answer;
  answer.head.kind = FrameKind::Acknowledge;
  answer.head.to = frame.head.from;
  answer.head.number = frame.head.number;
  answer.head.status = IO_TIMEOUT;
  after(modes.rnr, [answer = std::move(answer)]() mutable { handle(answer); });
}

void sectionName(char (&name)[80], int family, USHORT port) {
  snprintf(name, sizeof name, "Local\\nd2-standin-%s-%u", family == AF_INET ? "ip4" : "ip6", port);
}

}  // namespace

Place placeOf(const Object& object) { return {GetCurrentProcessId(), object.id()}; }

void post(Frame frame) {
  if (modes.unreachable != 0) return lose(frame);
  if (frame.head.to.process == GetCurrentProcessId()) {
    local().push_back(std::move(frame));
    return;
  }
  open();
  const DWORD process = frame.head.to.process;
  const HANDLE pipe = pipeTo(process);
  frame.head.bytes = static_cast<UINT32>(frame.bytes.size());
  if (pipe != INVALID_HANDLE_VALUE && writeAll(pipe, &frame.head, sizeof frame.head) &&
      writeAll(pipe, frame.bytes.data(), frame.bytes.size()))
    return;
  if (pipe != INVALID_HANDLE_VALUE) CloseHandle(pipe);
  pipes().erase(process);
  soon([process] { processGone(process); });
}

void deliverLocally() {
  if (delivering) return;
  delivering = true;
  while (!local().empty()) {
    Frame frame = std::move(local().front());
    local().pop_front();
    handle(frame);
  }
  delivering = false;
}

Claim* Claim::take(int family, USHORT port) {
  char name[80];
  sectionName(name, family, port);
  const HANDLE section = CreateFileMappingA(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, sizeof(Place), name);
  if (section == nullptr) return nullptr;
  if (GetLastError() == ERROR_ALREADY_EXISTS) {
    CloseHandle(section);
    return nullptr;
  }
  auto* const place = static_cast<Place*>(MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof(Place)));
  if (place == nullptr) {
    CloseHandle(section);
    return nullptr;
  }
  open();
  return new Claim(section, place);
}

Claim::~Claim() {
  UnmapViewOfFile(place_);
  CloseHandle(section_);
}

void Claim::announce(const Object& listener) { *place_ = placeOf(listener); }
void Claim::withdraw() { *place_ = Place{}; }

Place listenerAt(int family, USHORT port) {
  char name[80];
  sectionName(name, family, port);
  const HANDLE section = OpenFileMappingA(FILE_MAP_READ, FALSE, name);
  if (section == nullptr) return {};
  Place found{};
  if (const auto* const place = static_cast<const Place*>(MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof(Place)))) {
    found = *place;
    UnmapViewOfFile(place);
  }
  CloseHandle(section);
  return found;
}

}  // namespace nd2
