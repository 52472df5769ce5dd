// The version of all that two instances of this package say to each other beyond the standards.
#pragma once
#include <cstdint>

namespace nd {

// Of the frames of slots and ports, the rings and tables that processes of a host share, the statistics they ask each other for, the
// probes of the port's steering, the extensions that REQ and REP agree on, and the hello of networkdirect/net. Two numbers that differ
// have nothing in common but RoCEv2: the names of local sockets contain this one (local_names.h), so that instances of two dialects on
// one host meet as two users do. TypeScript has the same number (hca/dialect.ts, nd/net/wire.ts). CONTRIBUTING.md says when it changes.
constexpr uint32_t kDialect = 6;

static_assert(kDialect <= 0xff, "frames, vendor ids and hellos have a byte for it");

}  // namespace nd
