// Socket addresses of this provider's adapter.
#pragma once
#include "object.h"

namespace nd2 {

/// A client's address; nothing if it is none.
std::optional<SOCKADDR_INET> copyAddress(const sockaddr* address, ULONG bytes);
bool isLocal(const SOCKADDR_INET& address);
bool isWildcard(const SOCKADDR_INET& address);
USHORT portOf(const SOCKADDR_INET& address);
void setPort(SOCKADDR_INET& address, USHORT port);
/// The next of the ports that anyone may have.
USHORT ephemeralPort();
/// The out-parameters of GetLocalAddress and GetPeerAddress.
HRESULT answerAddress(const SOCKADDR_INET& from, sockaddr* address, ULONG* bytes);
/// The out-parameters of QueryAddressList.
HRESULT answerAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes);

}  // namespace nd2
