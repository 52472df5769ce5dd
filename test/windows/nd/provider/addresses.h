// Socket addresses of this provider's adapter.
#pragma once
#include "object.h"

namespace nd2 {

/// Checks and copies a client's address; nullopt if it is not valid.
std::optional<SOCKADDR_INET> copyAddress(const sockaddr* address, ULONG bytes);
bool isLocal(const SOCKADDR_INET& address);
bool isWildcard(const SOCKADDR_INET& address);
USHORT portOf(const SOCKADDR_INET& address);
void setPort(SOCKADDR_INET& address, USHORT port);
/// Returns the next ephemeral port.
USHORT ephemeralPort();
/// Sets the output parameters of GetLocalAddress and GetPeerAddress.
HRESULT outputAddress(const SOCKADDR_INET& from, sockaddr* address, ULONG* bytes);
/// Sets the output parameters of QueryAddressList.
HRESULT outputAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes);

}  // namespace nd2
