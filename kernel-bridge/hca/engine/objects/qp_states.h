// The states of a queue pair as tables: transitions with their attribute masks, and the operations that each state
// allows (IBA 1 §10.3.1; roce-wire §3.4).
#pragma once
#include "objects/parameters.h"

namespace nd {

struct Transition {
  uint32_t from, to;
  // Required bits, and optional bits, by QP type in the order RC, UC, UD.
  struct Masks {
    bool possible;
    uint32_t required, optional;
  } masks[3];
};
// Returns null if this type has no such transition. Any state may change to RESET and ERROR.
const Transition::Masks* findTransition(uint32_t type, uint32_t from, uint32_t to);
// Returns kSuccess, kInvalidDeviceState (no such transition, wrong current state) or kInvalidParameter (masks, values).
Status checkModify(const HcaLimits& limits, uint32_t type, uint32_t state, uint32_t mask,
                   const QpAttributes& attributes, uint32_t* target);
// Copies the values that the mask names. The caller sets the state.
void applyAttributes(QpAttributes& to, uint32_t mask, const QpAttributes& from);

// The operations that a state allows.
struct StateRules {
  bool receivesRequests, receivesResponses, beginsWork, continuesWork;
};
inline constexpr StateRules kStateRules[] = {
    /* RESET */ {false, false, false, false},
    /* INIT  */ {false, false, false, false},
    /* RTR   */ {true, false, false, false},
    /* RTS   */ {true, true, true, true},
    /* SQD   */ {true, true, false, true},
    /* SQE   */ {true, false, false, false},
    /* ERROR */ {false, false, false, false},
};
inline const StateRules& stateRules(uint32_t state) {
  return kStateRules[state <= abi::kQpsError ? state : uint32_t(abi::kQpsError)];
}

}  // namespace nd
