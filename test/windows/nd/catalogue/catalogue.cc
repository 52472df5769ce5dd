// A stand-in for the Winsock catalogue, because Wine's has no paths of NetworkDirect providers. It exports the two
// functions that read the catalogue. The environment variable STANDIN_CATALOGUE lists the entries:
// "name=path;name=path". Some names select an entry with one field that does not match.
#include <winsock2.h>
#include <ws2spi.h>
#include <windows.h>
#include <algorithm>
#include <cstring>
#include <cwchar>
#include <string>
#include <vector>

namespace {

struct Entry {
  std::wstring name, path;
};

std::vector<Entry> entries() {
  wchar_t text[4096];
  const DWORD length = GetEnvironmentVariableW(L"STANDIN_CATALOGUE", text, 4096);
  std::vector<Entry> all;
  const std::wstring whole(text, length < 4096 ? length : 0);
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = std::min(whole.find(L';', begin), whole.size());
    const size_t equals = whole.find(L'=', begin);
    if (equals < end) all.push_back({whole.substr(begin, equals - begin), whole.substr(equals + 1, end - equals - 1)});
    begin = end + 1;
  }
  return all;
}

/// The id of an entry contains its index.
GUID idOf(size_t index) { return {0x5744414e, 0x0001, 0x0002, {3, 4, 5, 6, 7, 8, 9, static_cast<BYTE>(index)}}; }

WSAPROTOCOL_INFOW infoOf(const Entry& entry, size_t index) {
  WSAPROTOCOL_INFOW info{};
  info.dwServiceFlags1 =
      XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA | 0x20000;
  info.dwProviderFlags = PFL_HIDDEN | 0x10 | PFL_MULTIPLE_PROTO_ENTRIES;  // PFL_NETWORKDIRECT_PROVIDER
  info.ProviderId = idOf(index);
  info.iVersion = 0x20000;
  info.iAddressFamily = AF_INET;
  info.iMaxSockAddr = info.iMinSockAddr = sizeof(sockaddr_in);
  info.iSocketType = -1;
  wcsncpy(info.szProtocol, entry.name.c_str(), WSAPROTOCOL_LEN);
  if (entry.name == L"datagrams") info.dwServiceFlags1 = XP1_CONNECTIONLESS;
  if (entry.name == L"visible") info.dwProviderFlags = 0x10;
  if (entry.name == L"ordinary") info.dwProviderFlags = PFL_HIDDEN;
  if (entry.name == L"version 1") info.iVersion = 1;
  if (entry.name == L"stream") info.iSocketType = SOCK_STREAM;
  if (entry.name == L"tcp") info.iProtocol = IPPROTO_TCP;
  if (entry.name == L"several") info.iProtocolMaxOffset = 1;
  return info;
}

}  // namespace

extern "C" __declspec(dllexport) int WSAAPI
    WSCEnumProtocols(INT* protocols, WSAPROTOCOL_INFOW* buffer, DWORD* length, INT* error) {
  const auto all = entries();
  const auto need = static_cast<DWORD>(all.size() * sizeof(WSAPROTOCOL_INFOW));
  const DWORD room = buffer == nullptr ? 0 : *length;
  *error = protocols != nullptr ? WSAEINVAL : WSAENOBUFS;
  if (protocols != nullptr) return SOCKET_ERROR;
  *length = need;
  if (room < need) return SOCKET_ERROR;
  for (size_t i = 0; i < all.size(); i++) buffer[i] = infoOf(all[i], i);
  return static_cast<int>(all.size());
}

extern "C" __declspec(dllexport) int WSAAPI WSCGetProviderPath(GUID* id, WCHAR* path, INT* length, INT* error) {
  const auto all = entries();
  for (size_t i = 0; i < all.size(); i++) {
    const GUID own = idOf(i);
    if (memcmp(&own, id, sizeof own) != 0) continue;
    const auto need = static_cast<INT>(all[i].path.size() + 1);
    const bool fits = *length >= need;
    *length = need;
    *error = WSAEFAULT;
    if (!fits) return SOCKET_ERROR;
    wcscpy(path, all[i].path.c_str());
    return 0;
  }
  *error = WSAEINVAL;
  return SOCKET_ERROR;
}
