// Connections between processes on this host are message pipes. A name is claimed by a mutex, which exists as long as
// the process that created it. Each message starts with the number of accompanying handles and their values, which are
// already valid in the receiver.
#include "platform/local_socket.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>

#include "platform/readiness.h"
#include "platform/windows/descriptor_object.h"
#include "platform/windows/error_text.h"
#include "platform/windows/user_sid.h"

namespace nd {
namespace {

constexpr char kNames[] = "Global\\";  // the names of all sessions
constexpr char kPipes[] = "\\\\.\\pipe\\";
constexpr DWORD kPipeBytes = 1 << 20;
// The server of the pipe may identify this process's user, but may not act on the user's behalf.
constexpr DWORD kClientFlags = FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION;
constexpr size_t kLargestMessage = 1 << 17;
constexpr size_t kMostHeld = 256;    // received messages that have not been taken
constexpr size_t kMostUnsent = 256;  // messages that the pipe has no room for
constexpr uint32_t kInstances = 8;   // connections that may wait to be accepted

struct Header {
  uint32_t handles = 0, unused = 0;
  uint64_t values[kMostPassed] = {};
};

std::shared_ptr<Signal> makeSignal() { return std::make_shared<Signal>(CreateEventW(nullptr, TRUE, FALSE, nullptr)); }

// An operation pending on a handle. It is destroyed once Windows no longer uses it.
struct Operation {
  explicit Operation(HANDLE event) { overlapped.hEvent = event; }
  bool done() const { return HasOverlappedIoCompleted(&overlapped); }
  // The event may have been signalled for another operation, so waiting for it alone proves nothing.
  void await(HANDLE handle) {
    if (!done()) CancelIoEx(handle, &overlapped);
    while (!done()) SwitchToThread();
  }
  OVERLAPPED overlapped{};
  std::vector<uint8_t> bytes;
};

class Connection final : public Object {
 public:
  Connection(UniqueFd pipe, ProcessId process)
      : pipe_(std::move(pipe)), process_(process), ownUser_(isOwnUser(process)) {}
  // Sends on a connection whose messages another object receives.
  Connection(UniqueFd pipe, const Connection& other)
      : pipe_(std::move(pipe)), process_(other.process_), ownUser_(other.ownUser_), sendsOnly_(true) {}
  ~Connection() override {
    if (reading_) read_.await(handle());
    for (auto& operation : unsent_) operation->await(handle());
  }

  bool start() {
    DWORD mode = PIPE_READMODE_MESSAGE;
    if (signal_->handle == nullptr || SetNamedPipeHandleState(handle(), &mode, nullptr, nullptr) == 0) return false;
    read_.bytes.resize(kLargestMessage);
    std::lock_guard<std::mutex> guard(mutex_);
    beginRead();
    return true;
  }

  const std::shared_ptr<Signal>& signal() const override { return signal_; }
  uint32_t readyKinds(uint32_t kinds, bool signalled) override {
    std::lock_guard<std::mutex> guard(mutex_);
    if (signalled) ResetEvent(signal_->handle);  // later completions signal again
    return now(kinds);
  }
  bool waits(uint32_t kinds) const override {
    std::lock_guard<std::mutex> guard(mutex_);
    return const_cast<Connection*>(this)->now(kinds) == 0;
  }

  // Called when no set checks the connection.
  bool collect(std::shared_ptr<Signal>* signals, uint32_t* count) override {
    ResetEvent(signal_->handle);
    return Object::collect(signals, count);
  }
  std::unique_ptr<Object> duplicate() override {
    UniqueFd pipe = duplicateDescriptor(pipe_.get());
    auto copied = pipe.valid() ? std::make_unique<Connection>(std::move(pipe), *this) : nullptr;
    return copied != nullptr && copied->signal_->handle != nullptr ? std::move(copied) : nullptr;
  }

  int send(const Piece* pieces, uint32_t count, const Descriptor* passed, uint32_t passedCount) {
    std::lock_guard<std::mutex> guard(mutex_);
    dropSent();
    if (ended_) return EPIPE;
    if (unsent_.size() >= kMostUnsent) return EAGAIN;
    Header header;
    if (!handOver(passed, passedCount, &header)) return EPERM;
    auto operation = std::make_unique<Operation>(signal_->handle);
    const auto add = [&](const void* data, uint64_t length) {
      const auto* from = static_cast<const uint8_t*>(data);
      operation->bytes.insert(operation->bytes.end(), from, from + length);
    };
    add(&header, sizeof header);
    for (uint32_t i = 0; i < count; i++) add(pieces[i].data, pieces[i].length);
    const auto length = static_cast<DWORD>(operation->bytes.size());
    if (WriteFile(handle(), operation->bytes.data(), length, nullptr, &operation->overlapped) == 0) {
      if (GetLastError() != ERROR_IO_PENDING) return EPIPE;
      unsent_.push_back(std::move(operation));
    }
    return 0;
  }

  int64_t receive(void* bytes, uint64_t room, UniqueFd* passed, uint32_t* passedCount) {
    std::lock_guard<std::mutex> guard(mutex_);
    pump();
    if (held_.empty()) return ended_ ? 0 : -EAGAIN;
    const std::vector<uint8_t> message = std::move(held_.front());
    held_.pop_front();
    pump();
    Header header;
    if (message.size() <= sizeof header) return 0;  // not a message of this package
    std::memcpy(&header, message.data(), sizeof header);
    for (uint32_t i = 0; i < header.handles && i < kMostPassed; i++) {
      // Windows handles have the two low bits clear; any other value is invalid.
      if (header.values[i] == 0 || (header.values[i] & 3) != 0) continue;
      UniqueFd taken(static_cast<Descriptor>(header.values[i]));
      if (passed != nullptr && *passedCount < kMostPassed) passed[(*passedCount)++] = std::move(taken);
    }
    const uint64_t length = std::min<uint64_t>(message.size() - sizeof header, room);
    std::memcpy(bytes, message.data() + sizeof header, length);
    return static_cast<int64_t>(length);
  }

  bool hasEnded() {
    std::lock_guard<std::mutex> guard(mutex_);
    pump();
    return ended_;
  }
  ProcessId process() const { return process_; }
  bool ownUser() const { return ownUser_; }

 private:
  HANDLE handle() const { return handleOf(pipe_.get()); }

  uint32_t now(uint32_t kinds) {
    pump();
    dropSent();
    return (held_.empty() ? 0 : kinds & Readiness::kReadable) | (ended_ ? Readiness::kEnded : 0u) |
           (unsent_.size() < kMostUnsent ? kinds & Readiness::kWritable : 0);
  }

  // Takes received messages and starts the next read, which also detects the end of the connection in time.
  void pump() {
    while (reading_ && read_.done()) {
      DWORD bytes = 0;
      reading_ = false;
      if (GetOverlappedResult(handle(), &read_.overlapped, &bytes, FALSE) != 0) {
        held_.emplace_back(read_.bytes.begin(), read_.bytes.begin() + bytes);
      } else if (GetLastError() != ERROR_OPERATION_ABORTED) {  // aborted: the thread that started it has ended
        ended_ = true;
        return;
      }
      beginRead();
    }
    if (!reading_ && !ended_) beginRead();
  }

  void beginRead() {
    if (ended_ || reading_ || sendsOnly_ || held_.size() >= kMostHeld) return;
    read_.overlapped = {};
    read_.overlapped.hEvent = signal_->handle;
    reading_ = ReadFile(handle(), read_.bytes.data(), static_cast<DWORD>(read_.bytes.size()), nullptr,
                        &read_.overlapped) != 0 ||
               GetLastError() == ERROR_IO_PENDING;
    ended_ = !reading_;
  }

  void dropSent() {
    while (!unsent_.empty() && unsent_.front()->done()) unsent_.pop_front();
  }

  bool handOver(const Descriptor* passed, uint32_t count, Header* header) {
    if (count == 0) return true;
    if (!peer_.valid()) peer_.reset(descriptorOf(OpenProcess(PROCESS_DUP_HANDLE, FALSE, static_cast<DWORD>(process_))));
    for (uint32_t i = 0; i < count; i++) {
      HANDLE theirs = nullptr;
      if (!peer_.valid() || DuplicateHandle(GetCurrentProcess(), handleOf(passed[i]), handleOf(peer_.get()), &theirs, 0,
                                            FALSE, DUPLICATE_SAME_ACCESS) == 0)
        return false;
      header->values[header->handles++] = reinterpret_cast<uintptr_t>(theirs);
    }
    return true;
  }

  mutable std::mutex mutex_;  // protects the mutable state
  const UniqueFd pipe_;
  const ProcessId process_;
  const bool ownUser_, sendsOnly_ = false;
  UniqueFd peer_;
  const std::shared_ptr<Signal> signal_ = makeSignal();
  Operation read_{nullptr};
  bool reading_ = false, ended_ = false;
  std::deque<std::vector<uint8_t>> held_;
  std::deque<std::unique_ptr<Operation>> unsent_;
};

// Each instance of its pipe waits for one connection.
class Listener final : public Object {
 public:
  Listener(UniqueFd claim, std::wstring pipe) : claim_(std::move(claim)), pipe_(std::move(pipe)) {}
  ~Listener() override { refuse(); }

  bool start() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (ownAccess() == nullptr) return false;
    while (waiting_.size() < kInstances)
      if (!addInstance()) return !waiting_.empty();
    return true;
  }

  const std::shared_ptr<Signal>& signal() const override { return signal_; }
  uint32_t readyKinds(uint32_t kinds, bool signalled) override {
    if (signalled) ResetEvent(signal_->handle);
    return waits(kinds) ? 0 : kinds & Readiness::kReadable;
  }
  bool waits(uint32_t) const override {
    std::lock_guard<std::mutex> guard(mutex_);
    for (const auto& one : waiting_)
      if (one->connected()) return false;
    return true;
  }

  int accept(UniqueFd* connection) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
      if (!(*one)->connected()) continue;
      UniqueFd pipe = std::move((*one)->pipe);
      waiting_.erase(one);
      if (!refusing_) addInstance();
      ULONG process = 0;
      if (GetNamedPipeClientProcessId(handleOf(pipe.get()), &process) == 0) return ECONNABORTED;
      auto made = std::make_unique<Connection>(std::move(pipe), process);
      if (!made->start()) return ECONNABORTED;
      if (!made->ownUser()) return EACCES;
      *connection = descriptorOf(std::unique_ptr<Object>(std::move(made)));
      return 0;
    }
    return refusing_ ? EINVAL : EAGAIN;
  }

  void refuse() {
    std::lock_guard<std::mutex> guard(mutex_);
    refusing_ = true;
    for (auto one = waiting_.begin(); one != waiting_.end();) one = (*one)->connected() ? one + 1 : waiting_.erase(one);
  }

 private:
  struct Instance {
    explicit Instance(HANDLE event) : operation(event) {}
    ~Instance() {
      if (pipe.valid() && pending) operation.await(handleOf(pipe.get()));
    }
    bool connected() const { return !pending || operation.done(); }
    UniqueFd pipe;
    Operation operation;
    bool pending = false;
  };

  bool addInstance() {
    auto one = std::make_unique<Instance>(signal_->handle);
    one->pipe.reset(
        descriptorOf(CreateNamedPipeW(pipe_.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED,
                                      PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_REJECT_REMOTE_CLIENTS,
                                      PIPE_UNLIMITED_INSTANCES, kPipeBytes, kPipeBytes, 0, ownAccess())));
    if (!one->pipe.valid()) return false;
    if (ConnectNamedPipe(handleOf(one->pipe.get()), &one->operation.overlapped) == 0) {
      const DWORD error = GetLastError();
      if (error != ERROR_IO_PENDING && error != ERROR_PIPE_CONNECTED) return false;
      one->pending = error == ERROR_IO_PENDING;
    }
    waiting_.push_back(std::move(one));
    return true;
  }

  mutable std::mutex mutex_;  // protects the mutable state
  const UniqueFd claim_;
  const std::wstring pipe_;
  const std::shared_ptr<Signal> signal_ = makeSignal();
  bool refusing_ = false;
  std::vector<std::unique_ptr<Instance>> waiting_;
};

Connection& connectionOf(Descriptor descriptor) { return *static_cast<Connection*>(objectOf(descriptor)); }
Listener& listenerOf(Descriptor descriptor) { return *static_cast<Listener*>(objectOf(descriptor)); }

}  // namespace

int listenLocal(const std::string& name, UniqueFd* listener) {
  const HANDLE mutex = CreateMutexW(ownAccess(), FALSE, wideOf(kNames + name).c_str());
  const DWORD error = GetLastError();
  UniqueFd claim(descriptorOf(mutex));
  if (!claim.valid()) return error == ERROR_ACCESS_DENIED ? EADDRINUSE : errnoOf(error);  // another user has it
  if (error == ERROR_ALREADY_EXISTS) return EADDRINUSE;
  auto made = std::make_unique<Listener>(std::move(claim), wideOf(kPipes + name));
  if (!made->start()) return ENOBUFS;
  *listener = descriptorOf(std::unique_ptr<Object>(std::move(made)));
  return 0;
}

int connectLocal(const std::string& name, UniqueFd* connection, ProcessId* process) {
  UniqueFd pipe(descriptorOf(CreateFileW(wideOf(kPipes + name).c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr,
                                         OPEN_EXISTING, kClientFlags, nullptr)));
  if (!pipe.valid()) {
    const DWORD error = GetLastError();
    return error == ERROR_PIPE_BUSY ? EAGAIN : error == ERROR_ACCESS_DENIED ? EACCES : ECONNREFUSED;
  }
  ULONG peer = 0;
  if (GetNamedPipeServerProcessId(handleOf(pipe.get()), &peer) == 0) return ECONNREFUSED;
  auto made = std::make_unique<Connection>(std::move(pipe), peer);
  if (!made->ownUser()) return EACCES;
  if (!made->start()) return ECONNREFUSED;
  if (process != nullptr) *process = peer;
  *connection = descriptorOf(std::unique_ptr<Object>(std::move(made)));
  return 0;
}

int acceptLocal(Descriptor listener, UniqueFd* connection) { return listenerOf(listener).accept(connection); }
void refuseLocal(Descriptor listener) { listenerOf(listener).refuse(); }

bool identifyPeer(Descriptor connection, PeerIdentity* identity) {
  const Connection& c = connectionOf(connection);
  *identity = {c.process(), 0, c.ownUser()};
  return true;
}

bool peerTrusted(Descriptor connection, ProcessId* process) {
  if (process != nullptr) *process = connectionOf(connection).process();
  return connectionOf(connection).ownUser();
}

int sendLocal(Descriptor connection, const Piece* pieces, uint32_t count, const Descriptor* passed,
              uint32_t passedCount) {
  return connectionOf(connection).send(pieces, count, passed, passedCount);
}

int64_t receiveLocal(Descriptor connection, void* bytes, uint64_t room, UniqueFd* passed, uint32_t* passedCount) {
  return connectionOf(connection).receive(bytes, room, passed, passedCount);
}

bool hasEndedLocal(Descriptor connection) { return connectionOf(connection).hasEnded(); }
void widenLocal(Descriptor, uint32_t) {}

}  // namespace nd
