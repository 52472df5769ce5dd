/* Connections between two endpoints of the stand-in, with the behaviour of WinVerbs on a single host. */
#include "standin.h"

enum Phase { IDLE, LISTENING, CONNECTING, REQUESTED, ACCEPTING, CONNECTED, DISCONNECTING, ENDED };
enum { LISTEN = 51, GET_REQUEST = 52, CONNECT = 42, ACCEPT = 43, REJECT = 41, DISCONNECT = 44, NOTIFY = 45 };

static u16 port_of(const u8 *address) { return (u16)get_be(address + 2, 2); }

static Object *peer_of(const Object *o) { return object_of(NULL, o->peer_ep, EP); }

/* Encodes the new value of a provider's state variable. */
static void state_bytes(u8 *bytes, u32 state, u32 other) {
  put(bytes, state, 4);
  put(bytes + 4, other, 4);
}

static void end_all(u64 id, u32 fn, NTSTATUS status) {
  IRP *irp;
  while ((irp = take_request(id, fn)) != NULL) finish_request(irp, status, NULL, 0);
}

typedef struct {
  u16 port;
  Object *found;
} Search;

static int is_listener(Object *o, void *context) {
  Search *search = context;
  if (o->phase == LISTENING && port_of(o->address) == search->port) search->found = o;
  return search->found == NULL;
}

static int is_waiting(Object *o, void *context) {
  Search *search = context;
  if (o->phase == CONNECTING && o->peer_ep == 0 && o->listener == id_of(search->found)) {
    search->found = o;
    return 0;
  }
  return 1;
}

static void pair(Object *active, Object *passive, const Object *listener) {
  active->peer_ep = id_of(passive);
  passive->peer_ep = id_of(active);
  passive->phase = REQUESTED;
  RtlCopyMemory(passive->address, listener->address, 28);
  RtlCopyMemory(passive->peer, active->address, 28);
  /* The read depths are swapped, as seen by the other side. */
  RtlCopyMemory(passive->param, active->param, 80);
  put(passive->param, get(active->param + 8, 8), 8);
  put(passive->param + 8, get(active->param, 8), 8);
}

static NTSTATUS get_request(Request *r, Object *listener) {
  Object *fresh = object_of(r->file, get(r->bytes + 8, 8), EP);
  Search search = {0, listener};
  if (!fresh) return STATUS_NOT_FOUND;
  if (fresh->phase != IDLE) return 0xc0000108; /* CONNECTION_IN_USE */
  each_object(EP, is_waiting, &search);
  if (search.found == listener) return STATUS_PENDING;
  pair(search.found, fresh, listener);
  return STATUS_SUCCESS;
}

static NTSTATUS connect_to(Request *r, Object *o) {
  Search search = {port_of(r->bytes + 16), NULL};
  IRP *irp;
  each_object(EP, is_listener, &search);
  if (!search.found) return STATUS_NOT_IMPLEMENTED;
  o->phase = CONNECTING;
  o->listener = id_of(search.found);
  o->peer_ep = 0;
  o->qp = get(r->bytes + 8, 8);
  RtlCopyMemory(o->peer, r->bytes + 16, 28);
  RtlCopyMemory(o->param, r->bytes + 48, 80);
  irp = take_request(o->listener, GET_REQUEST);
  if (irp) {
    Object *fresh = object_of(NULL, get((u8 *)irp->AssociatedIrp.SystemBuffer + 8, 8), EP);
    if (fresh) pair(o, fresh, search.found);
    finish_request(irp, fresh ? STATUS_SUCCESS : STATUS_NOT_FOUND, NULL, 0);
  }
  return STATUS_PENDING;
}

static NTSTATUS accept(Request *r, Object *o) {
  Object *peer = peer_of(o);
  IRP *irp;
  u8 state[8];
  if (!peer) return 0xc0000241; /* CONNECTION_ABORTED */
  if (o->phase == REQUESTED) {
    o->qp = get(r->bytes + 8, 8);
    RtlCopyMemory(peer->param, r->bytes + 16, 80);
    put(peer->param, get(r->bytes + 24, 8), 8);
    put(peer->param + 8, get(r->bytes + 16, 8), 8);
    o->phase = ACCEPTING;
    irp = take_request(id_of(peer), CONNECT);
    if (irp) finish_request(irp, STATUS_SUCCESS, NULL, 0);
    r->information = r->out;
    return STATUS_PENDING;
  }
  if (peer->phase != ACCEPTING) return STATUS_INVALID_DEVICE_STATE;
  o->phase = peer->phase = CONNECTED;
  irp = take_request(id_of(peer), ACCEPT);
  state_bytes(state, STATE_RTS, QPN_BASE + (u32)o->qp);
  if (irp) finish_request(irp, STATUS_SUCCESS, state, sizeof state);
  state_bytes(state, STATE_RTS, QPN_BASE + (u32)peer->qp);
  RtlZeroMemory(r->bytes, r->out);
  for (u32 i = 0; i < sizeof state && i < r->out; i++) r->bytes[i] = state[i];
  r->information = r->out;
  return STATUS_SUCCESS;
}

static NTSTATUS reject(Request *r, Object *o) {
  Object *peer = peer_of(o);
  IRP *irp;
  u32 length = r->in - 16 < 56 ? r->in - 16 : 56;
  if (!peer) return STATUS_INVALID_DEVICE_STATE;
  RtlZeroMemory(peer->param, 80);
  RtlCopyMemory(peer->param + 24, r->bytes + 16, length);
  peer->param[18] = (u8)length;
  irp = take_request(id_of(peer), o->phase == REQUESTED ? CONNECT : ACCEPT);
  o->phase = peer->phase = ENDED;
  if (irp) finish_request(irp, 0xc0000236 /* CONNECTION_REFUSED */, NULL, 0);
  return STATUS_SUCCESS;
}

/* Ends a side that has disconnected, or whose peer has. */
static void end_side(Object *o) {
  u8 state[8];
  IRP *irp = take_request(id_of(o), DISCONNECT);
  o->phase = ENDED;
  state_bytes(state, STATE_ERROR, 0);
  if (irp) finish_request(irp, STATUS_SUCCESS, state, sizeof state);
  end_all(id_of(o), NOTIFY, STATUS_SUCCESS);
}

static NTSTATUS disconnect(Request *r, Object *o) {
  Object *peer = peer_of(o);
  r->information = r->out;
  if (o->phase == CONNECTED && peer && peer->phase == CONNECTED) {
    /* The peer's provider is not informed before the peer's own Disconnect. */
    o->phase = DISCONNECTING;
    end_all(id_of(peer), NOTIFY, STATUS_SUCCESS);
    return STATUS_PENDING;
  }
  if (o->phase != CONNECTED && o->phase != DISCONNECTING) return STATUS_INVALID_DEVICE_STATE;
  if (peer && peer->phase == DISCONNECTING) end_side(peer);
  end_side(o);
  RtlZeroMemory(r->bytes, r->out);
  if (r->out >= 4) put(r->bytes, STATE_ERROR, 4);
  return STATUS_SUCCESS;
}

NTSTATUS simulate_endpoint(Request *r, u32 fn, Object *o) {
  if (fn == LISTEN) o->phase = LISTENING;
  if (fn == CONNECT) return connect_to(r, o);
  if (o->phase == IDLE) return STATUS_NOT_IMPLEMENTED;
  switch (fn) {
    case GET_REQUEST: return o->phase == LISTENING ? get_request(r, o) : STATUS_NOT_SUPPORTED;
    case ACCEPT: return accept(r, o);
    case REJECT: return reject(r, o);
    case DISCONNECT: return disconnect(r, o);
    case NOTIFY: {
      Object *peer = peer_of(o);
      return o->phase == ENDED || !peer || peer->phase == DISCONNECTING ? STATUS_SUCCESS : STATUS_PENDING;
    }
  }
  return STATUS_NOT_IMPLEMENTED;
}

int simulated_attributes(const Object *o, u8 *attributes) {
  if (o->phase < CONNECTING) return 0;
  RtlCopyMemory(attributes, o->address, 28);
  RtlCopyMemory(attributes + 32, o->peer, 28);
  put_be(attributes + 64, STANDIN_GUID, 8);
  put_be(attributes + 72, 0xffff, 2);
  attributes[74] = 1;
  RtlCopyMemory(attributes + 80, o->param, 80);
  return 1;
}

static int forget_listener(Object *o, void *context) {
  if (o->phase == CONNECTING && o->listener == id_of(context) && o->peer_ep == 0) {
    o->phase = ENDED;
    end_all(id_of(o), CONNECT, 0xc0000236);
  }
  return 1;
}

void endpoint_dropped(Object *o) {
  Object *peer = peer_of(o);
  if (o->phase == LISTENING) each_object(EP, forget_listener, o);
  if (!peer || peer->peer_ep != id_of(o)) return;
  peer->peer_ep = 0;
  if (peer->phase == DISCONNECTING) end_side(peer);
  else if (peer->phase == CONNECTED) end_all(id_of(peer), NOTIFY, STATUS_SUCCESS);
  else {
    peer->phase = ENDED;
    end_all(id_of(peer), CONNECT, 0xc0000236);
    end_all(id_of(peer), ACCEPT, 0xc0000241);
  }
}
