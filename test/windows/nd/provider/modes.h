// How the stand-in behaves, and what it has seen: tests set and query it by the functions that modes.cc exports.
#pragma once
#include "nd2-spi.h"
#include <optional>

namespace nd2 {

/// Settings; `standin_set` and the environment variable STANDIN_ND ("reads=0,delay=10") change them by these names.
struct Modes {
  INT64 completion = 0;      ///< of requests whose outcome is known in the call: 0 PENDING, 1 at once, 2 in two phases
  INT64 delay = 0;           ///< ms until a request that is PENDING ends
  INT64 resize = 1;          ///< 0: completion queues cannot be resized (E_NOTIMPL)
  INT64 reads = 1;           ///< 0: Read is E_NOTIMPL
  INT64 windows = 1;         ///< 0: there are no memory windows (E_NOTIMPL)
  INT64 srq = 4096;          ///< depth of shared receive queues; 0: there are none (E_NOTIMPL)
  INT64 inlined = 256;       ///< maximum of bytes with INLINE; 0: the flag is ignored
  INT64 sge = 16;            ///< entries of a request
  INT64 transfer = 1 << 30;  ///< bytes of a request
  INT64 flush = 1;           ///< 0: Flush does nothing
  INT64 affinity = 1;        ///< 0: GetNotifyAffinity is NOT_SUPPORTED
  INT64 rnr = 300;           ///< ms that a Send waits for a Receive
  INT64 ipv6 = 1;            ///< 0: ::1 is not listed
  INT64 listed = 1;          ///< 0: no address is listed
  INT64 factory = 0;         ///< 1: DllGetClassObject has an IClassFactory alone
  INT64 hollow = 0;          ///< 1: new queue pairs and completion queues do nothing, for measuring calls
  INT64 padding = 0;         ///< 1: private data arrives padded with zeros to its maximum
  INT64 leaves = 0;   ///< 1: a thread that ends may release regions whose memory is registered, after its queue pairs
  INT64 removed = 0;  ///< 1: the device is gone
};
extern Modes modes;

/// Notes something that no correct client does; `format` as in printf. The method that runs is named.
void violation(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Counts a call of a method, which is the one that `violation` names from now on.
void entered(const char* method);
/// The status with which the test wants this call to fail, if any.
std::optional<HRESULT> injectedFailure(const char* method);
/// The status in which the test wants the overlapped request of this call to end, if any.
std::optional<HRESULT> injectedEnd(const char* method);

}  // namespace nd2
