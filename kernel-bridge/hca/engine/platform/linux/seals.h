// A seal that older headers lack (Linux 5.1).
#pragma once

namespace nd {

constexpr int kSealFutureWrite = 0x10;  // forbids new writable mappings and holes

}  // namespace nd
