// Settings and observations of the stand-in, which tests access through the exports of modes.cc.
#pragma once
#include "nd2-spi.h"
#include <optional>

namespace nd2 {

/// Settings. `standin_set` and the environment variable STANDIN_ND ("reads=0,delay=10") change them by name.
struct Modes {
  INT64 completion = 0;      ///< of requests that need not wait: 0 PENDING, 1 at once, 2 in two phases
  INT64 delay = 0;           ///< ms until a PENDING request completes
  INT64 resize = 1;          ///< 0: completion queues cannot be resized (E_NOTIMPL)
  INT64 reads = 1;           ///< 0: Read is E_NOTIMPL
  INT64 windows = 1;         ///< 0: memory windows are not supported (E_NOTIMPL)
  INT64 srq = 4096;          ///< maximum depth of shared receive queues; 0: not supported (E_NOTIMPL)
  INT64 inlined = 256;       ///< maximum bytes with INLINE; 0: the flag is ignored
  INT64 sge = 16;            ///< maximum scatter/gather entries of a request
  INT64 transfer = 1 << 30;  ///< maximum bytes of a request
  INT64 flush = 1;           ///< 0: Flush does nothing
  INT64 affinity = 1;        ///< 0: GetNotifyAffinity is NOT_SUPPORTED
  INT64 rnr = 300;           ///< RNR timeout of a Send, in ms
  INT64 ipv6 = 1;            ///< 0: ::1 is not listed
  INT64 listed = 1;          ///< 0: no address is listed
  INT64 factory = 0;         ///< 1: DllGetClassObject supports IClassFactory only
  INT64 hollow = 0;          ///< 1: new queue pairs and completion queues do nothing, for measuring the cost of calls
  INT64 padding = 0;         ///< 1: received private data is padded with zeros to its maximum length
  INT64 leaves = 0;          ///< 1: an ending thread may release registered regions, after its queue pairs
  INT64 removed = 0;         ///< 1: the device was removed
  INT64 single = 0;          ///< 1: opening an adapter that is open returns another reference to it
  INT64 purge = 0;           ///< 1: releasing a queue pair discards its results
  INT64 unreachable = 0;     ///< 1: the network loses all frames; a request to the peer ends in IO_TIMEOUT after `rnr`
};
extern Modes modes;

/// Records a call that a correct client does not make, with the name of the current method. `format` is that of printf.
void violation(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Counts a call of a method and makes it the current one.
void entered(const char* method);
/// Returns the status with which this call must fail, if a test has set one.
std::optional<HRESULT> injectedFailure(const char* method);
/// Returns the status in which the overlapped request of this call must end, if a test has set one.
std::optional<HRESULT> injectedEnd(const char* method);

}  // namespace nd2
