// Processes of one host do not speak to each other yet: a name can be claimed, and nobody connects to it.
#include "platform/local_socket.h"

#include <cerrno>

#include "platform/windows/object.h"
#include "platform/windows/text.h"

namespace nd {
namespace {

constexpr char kFolder[] = "Global\\";  // of all sessions

// The name of a listener: a mutex that exists as long as the process that made it.
class Listener final : public Object {
 public:
  explicit Listener(UniqueFd claim) : claim_(std::move(claim)) {}
  const std::shared_ptr<Signal>& signal() const override { return none_; }
  uint32_t look(uint32_t, bool) override { return 0; }
  bool waits(uint32_t) const override { return true; }

 private:
  const UniqueFd claim_;
  const std::shared_ptr<Signal> none_;
};

}  // namespace

int listenLocal(const std::string& name, UniqueFd* listener) {
  const HANDLE mutex = CreateMutexW(nullptr, FALSE, wideOf(kFolder + name).c_str());
  const DWORD error = GetLastError();
  UniqueFd claim(descriptorOf(mutex));
  if (!claim.valid()) return error == ERROR_ACCESS_DENIED ? EADDRINUSE : errnoOf(error);  // another user has it
  if (error == ERROR_ALREADY_EXISTS) return EADDRINUSE;
  *listener = descriptorOf(std::unique_ptr<Object>(std::make_unique<Listener>(std::move(claim))));
  return 0;
}

int connectLocal(const std::string&, UniqueFd*, ProcessId*) { return ECONNREFUSED; }
int acceptLocal(Descriptor, UniqueFd*) { return EAGAIN; }
void refuseLocal(Descriptor) {}
bool peerTrusted(Descriptor, ProcessId*) { return false; }
bool identifyPeer(Descriptor, PeerIdentity*) { return false; }
int sendLocal(Descriptor, const Piece*, uint32_t, const Descriptor*, uint32_t) { return ENOTSUP; }
int64_t receiveLocal(Descriptor, void*, uint64_t, UniqueFd*, uint32_t*) { return -ENOTSUP; }
bool hasEndedLocal(Descriptor) { return true; }
void widenLocal(Descriptor, uint32_t) {}

}  // namespace nd
