// The constants of engine/abi.h by their names in abi.ts, so that a test can compare the two files.
#pragma once
#include <cstdint>

#include "base/abi.h"

namespace nd::js {

struct AbiEntry {
  const char* name;
  uint32_t value;
};

constexpr AbiEntry kAbiTable[] = {
    {"cqHeaderBytes", abi::kCqHeaderBytes},
    {"cqProducer", abi::kCqProducer},
    {"cqState", abi::kCqState},
    {"cqConsumer", abi::kCqConsumer},
    {"cqeBytes", abi::kCqeBytes},
    {"cqeToken", abi::kCqeToken},
    {"cqeWqe", abi::kCqeWqe},
    {"cqeOpcode", abi::kCqeOpcode},
    {"cqeStatus", abi::kCqeStatus},
    {"cqeLength", abi::kCqeLength},
    {"cqeFlags", abi::kCqeFlags},
    {"cqeImmediate", abi::kCqeImmediate},
    {"cqeSourceQpn", abi::kCqeSourceQpn},
    {"cqeVendor", abi::kCqeVendor},
    {"cqePkeyIndex", abi::kCqePkeyIndex},
    {"cqeFlagImmediate", abi::kCqeFlagImmediate},
    {"cqeFlagInvalidated", abi::kCqeFlagInvalidated},
    {"cqeFlagGrh", abi::kCqeFlagGrh},
    {"cqeFlagSolicited", abi::kCqeFlagSolicited},
    {"cqeFlagReceiveQueue", abi::kCqeFlagReceiveQueue},
    {"cqeFlagSharedReceive", abi::kCqeFlagSharedReceive},
    {"qpHeaderBytes", abi::kQpHeaderBytes},
    {"qpSendProducer", abi::kQpSendProducer},
    {"qpReceiveProducer", abi::kQpReceiveProducer},
    {"qpState", abi::kQpState},
    {"qpUnfenced", abi::kQpUnfenced},
    {"qpReceiveBell", abi::kQpReceiveBell},
    {"sendWqeHeaderBytes", abi::kSendWqeHeaderBytes},
    {"swOpcode", abi::kSwOpcode},
    {"swFlags", abi::kSwFlags},
    {"swSgeCount", abi::kSwSgeCount},
    {"swImmediate", abi::kSwImmediate},
    {"swRemoteLo", abi::kSwRemoteLo},
    {"swRemoteHi", abi::kSwRemoteHi},
    {"swRkey", abi::kSwRkey},
    {"swAccess", abi::kSwAccess},
    {"swCompareLo", abi::kSwCompareLo},
    {"swCompareHi", abi::kSwCompareHi},
    {"swSwapLo", abi::kSwSwapLo},
    {"swSwapHi", abi::kSwSwapHi},
    {"swAh", abi::kSwAh},
    {"swRemoteQpn", abi::kSwRemoteQpn},
    {"swRemoteQkey", abi::kSwRemoteQkey},
    {"opSend", abi::kOpSend},
    {"opWrite", abi::kOpWrite},
    {"opRead", abi::kOpRead},
    {"opCompareExchange", abi::kOpCompareExchange},
    {"opFetchAdd", abi::kOpFetchAdd},
    {"opBindWindow", abi::kOpBindWindow},
    {"opLocalInvalidate", abi::kOpLocalInvalidate},
    {"opFastRegister", abi::kOpFastRegister},
    {"opReceive", abi::kOpReceive},
    {"opReceiveRdmaWrite", abi::kOpReceiveRdmaWrite},
    {"sendFlagImmediate", abi::kSendFlagImmediate},
    {"sendFlagFence", abi::kSendFlagFence},
    {"sendFlagSignaled", abi::kSendFlagSignaled},
    {"sendFlagSolicited", abi::kSendFlagSolicited},
    {"sendFlagInline", abi::kSendFlagInline},
    {"sendFlagInvalidate", abi::kSendFlagInvalidate},
    {"receiveWqeHeaderBytes", abi::kReceiveWqeHeaderBytes},
    {"rwSgeCount", abi::kRwSgeCount},
    {"grhBytes", abi::kGrhBytes},
    {"srqHeaderBytes", abi::kSrqHeaderBytes},
    {"srqProducer", abi::kSrqProducer},
    {"srqConsumer", abi::kSrqConsumer},
    {"srqReceiveBell", abi::kSrqReceiveBell},
    {"sgeBytes", abi::kSgeBytes},
    {"sgeAddressLo", abi::kSgeAddressLo},
    {"sgeAddressHi", abi::kSgeAddressHi},
    {"sgeLength", abi::kSgeLength},
    {"sgeLkey", abi::kSgeLkey},
};

}  // namespace nd::js
