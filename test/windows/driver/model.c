/* The stand-in's model of WinVerbs: objects of each file, and checks of every field of the requests. */
#include "standin.h"

enum { MOST_OBJECTS = 8192 };

static Object objects[MOST_OBJECTS];
static u64 last_id;

u64 id_of(const Object *o) { return (u64)(o - objects) + 1; }

Object *object_of(FILE_OBJECT *file, u64 id, u8 kind) {
  Object *o;
  if (id == 0 || id > MOST_OBJECTS) return NULL;
  o = &objects[id - 1];
  return o->kind == kind && (!file || o->file == file) ? o : NULL;
}

void each_object(u8 kind, int (*use)(Object *o, void *context), void *context) {
  for (u32 i = 0; i < MOST_OBJECTS; i++)
    if (objects[i].kind == kind && !use(&objects[i], context)) return;
}

static Object *find(Request *r, u64 id, u8 kind) { return object_of(r->file, id, kind); }

static Object *make(Request *r, u8 kind, const u64 *parents, u32 count) {
  for (u32 tried = 0; tried < MOST_OBJECTS; tried++) {
    Object *o = &objects[last_id++ % MOST_OBJECTS];
    if (o->kind != NONE) continue;
    RtlZeroMemory(o, sizeof *o);
    o->file = r->file;
    o->kind = kind;
    for (u32 i = 0; i < count; i++) {
      o->parents[i] = parents[i];
      if (parents[i]) objects[parents[i] - 1].users++;
    }
    standin_objects++;
    return o;
  }
  return NULL;
}

static void drop(Object *o) {
  if (o->kind == EP) endpoint_dropped(o);
  for (u32 i = 0; i < 4; i++)
    if (o->parents[i]) objects[o->parents[i] - 1].users--;
  o->kind = NONE;
  standin_objects--;
}

void model_closed(FILE_OBJECT *file) {
  /* Bottom up: an object is destroyed when no other uses it. */
  for (int left = 1; left;) {
    left = 0;
    for (u32 i = 0; i < MOST_OBJECTS; i++) {
      Object *o = &objects[i];
      if (o->kind == NONE || o->file != file) continue;
      if (o->users == 0) drop(o);
      else left = 1;
    }
  }
}

/* The layout of each function: lengths, what may follow, and reserved bytes, which must be 0. */
enum { PROVIDER = 1, EXTRA = 2, LIST = 4, WAITS = 8 };
typedef struct {
  const char *name;
  u16 in, out;
  u8 flags, kind;
  u8 reserved[6]; /* pairs of offset and length */
} Row;

static const Row rows[] = {
    {"?", 0, 0, 0, 0, {0}},
    {"GUID_QUERY", 0, 16, LIST, 0, {0}},
    {"LIBRARY_QUERY", 8, 0, LIST, 0, {0}},
    {"DEVICE_OPEN", 16, 16, PROVIDER, 0, {12, 4}},
    {"DEVICE_CLOSE", 8, 0, 0, DEVICE, {0}},
    {"DEVICE_QUERY", 8, 152, 0, DEVICE, {0}},
    {"DEVICE_PORT_QUERY", 16, 52, 0, DEVICE, {9, 7}},
    {"DEVICE_GID_QUERY", 16, 0, LIST, DEVICE, {9, 7}},
    {"DEVICE_PKEY_QUERY", 16, 0, LIST, DEVICE, {9, 7}},
    {"DEVICE_NOTIFY", 16, 4, WAITS, DEVICE, {8, 4}},
    {"DEVICE_CANCEL", 8, 0, 0, DEVICE, {0}},
    {"PD_ALLOCATE", 16, 16, PROVIDER, DEVICE, {12, 4}},
    {"PD_DEALLOCATE", 8, 0, 0, PD, {0}},
    {"MEMORY_REGISTER", 32, 8, 0, PD, {28, 4}},
    {"MEMORY_DEREGISTER", 16, 0, 0, PD, {8, 4}},
    {"MW_ALLOCATE", 16, 16, PROVIDER, PD, {12, 4}},
    {"MW_DEALLOCATE", 8, 0, 0, MW, {0}},
    {"AH_CREATE", 64, 64, PROVIDER, PD, {12, 4, 17, 1, 56, 2}},
    {"AH_DESTROY", 8, 0, 0, AH, {0}},
    {"CQ_CREATE", 16, 16, PROVIDER, DEVICE, {0}},
    {"CQ_DESTROY", 8, 0, 0, CQ, {0}},
    {"CQ_RESIZE", 16, 16, PROVIDER, CQ, {0}},
    {"CQ_NOTIFY", 16, 0, WAITS, CQ, {8, 4}},
    {"CQ_CANCEL", 8, 0, 0, CQ, {0}},
    {"SRQ_CREATE", 32, 32, PROVIDER, PD, {12, 4, 28, 4}},
    {"SRQ_DESTROY", 8, 0, 0, SRQ, {0}},
    {"SRQ_QUERY", 32, 32, PROVIDER, SRQ, {12, 4, 28, 4}},
    {"SRQ_MODIFY", 32, 32, PROVIDER, SRQ, {12, 4, 28, 4}},
    {"SRQ_NOTIFY", 8, 0, WAITS, SRQ, {0}},
    {"SRQ_CANCEL", 8, 0, 0, SRQ, {0}},
    {"QP_CREATE", 72, 72, PROVIDER, PD, {12, 4, 70, 2}},
    {"QP_DESTROY", 8, 0, 0, QP, {0}},
    {"QP_QUERY", 8, 192, 0, QP, {0}},
    {"QP_MODIFY", 192, 0, 0, QP, {187, 5}},
    {"QP_ATTACH", 32, 0, 0, QP, {8, 4}},
    {"QP_DETACH", 32, 0, 0, QP, {8, 4}},
    {"QP_CANCEL", 8, 0, 0, QP, {0}},
    {"EP_CREATE", 8, 8, 0, 0, {4, 4}},
    {"EP_DESTROY", 8, 0, 0, EP, {0}},
    {"EP_MODIFY", 16, 0, EXTRA, EP, {8, 4}},
    {"EP_BIND", 56, 56, 0, EP, {36, 4, 51, 5}},
    {"EP_REJECT", 16, 0, EXTRA, EP, {8, 8}},
    {"EP_CONNECT", 128, 0, WAITS, EP, {44, 4, 67, 5}},
    {"EP_ACCEPT", 96, 0, WAITS, EP, {35, 5}},
    {"EP_DISCONNECT", 16, 0, WAITS, EP, {0}},
    {"EP_DISCONNECT_NOTIFY", 8, 0, WAITS, EP, {0}},
    {"EP_QUERY", 8, 160, LIST, EP, {0}},
    {"EP_LOOKUP", 0, 0, LIST | EXTRA, 0, {0}},
    {"EP_MULTICAST_JOIN", 0, 0, LIST | EXTRA, 0, {0}},
    {"EP_MULTICAST_LEAVE", 0, 0, LIST | EXTRA, 0, {0}},
    {"EP_CANCEL", 8, 0, 0, EP, {0}},
    {"EP_LISTEN", 16, 0, 0, EP, {0}},
    {"EP_GET_REQUEST", 16, 0, WAITS, EP, {0}},
    {"PD_CANCEL", 8, 0, 0, PD, {0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Gives every byte of a reply a different value, so that tests detect fields that are read at a wrong offset. */
static void fill(u8 *at, u32 bytes, u8 from) {
  for (u32 i = 0; i < bytes; i++) at[i] = (u8)(from + i);
}

static int expect(int holds, const char *text) {
  if (!holds) fault(text);
  return holds;
}

/* WV_IO_AV */
static int good_av(const u8 *av) {
  return expect(av[0] <= 1, "WV_IO_AV.NetworkRouteValid") & expect(av[47] == 1, "WV_IO_AV.PortNumber") &
         expect(get_be(av + 4, 4) < 1u << 20, "WV_IO_AV.FlowLabel") & expect(av[44] < 16, "WV_IO_AV.ServiceLevel");
}

/* SOCKADDR_IN or SOCKADDR_IN6 in 28 bytes */
static int good_address(const u8 *address) {
  u32 family = (u32)get(address, 2);
  if (!expect(family == 2 || family == 23, "SOCKADDR family")) return 0;
  if (family == 2)
    for (int i = 8; i < 28; i++)
      if (!expect(address[i] == 0, "SOCKADDR_IN: bytes after the address")) return 0;
  return 1;
}

/* WV_IO_CONNECT_PARAM */
static int good_param(const u8 *param) {
  u32 length = param[18];
  if (!(expect(get(param, 8) < 256, "ResponderResources") & expect(get(param + 8, 8) < 256, "InitiatorDepth") &
        expect(param[16] < 8, "RetryCount") & expect(param[17] < 8, "RnrRetryCount") & expect(length <= 56, "DataLength")))
    return 0;
  for (u32 i = 24 + length; i < 80; i++)
    if (!expect(param[i] == 0, "private data after its length")) return 0;
  return 1;
}

/* Checks the bytes of the stand-in provider and returns the object's kind, id and number (uvp/standin-uvp.h). */
static NTSTATUS reply_to_provider(Request *r, u32 bytes, u32 fixed) {
  u8 *own = r->bytes + bytes;
  u64 id = get(r->bytes, 8);
  u32 kind = id && id <= MOST_OBJECTS ? objects[id - 1].kind : 0, number = 0;
  if (!(expect(r->in == fixed + 16 && r->out == bytes + 24, "length of the provider's bytes") &
        expect(get(own, 4) == UVP_MAGIC, "the provider's magic") & expect(get(own + 4, 4) == kind, "the provider's kind") &
        expect(get(own + 8, 8) == ~(u64)UVP_MAGIC, "the provider's last bytes")))
    return STATUS_INVALID_PARAMETER;
  if (kind == QP) number = QPN_BASE + (u32)id;
  put(r->bytes + 8, 0x5a, 4);
  put(own, UVP_MAGIC, 4);
  put(own + 4, kind, 4);
  put(own + 8, id, 8);
  put(own + 16, number, 8);
  r->information = bytes + 24;
  return STATUS_SUCCESS;
}

static NTSTATUS reply(Request *r, u32 bytes, u32 fixed) {
  if (r->command == UVP_MAGIC) return reply_to_provider(r, bytes, fixed);
  /* Other providers' bytes are returned inverted, up to the available room. */
  u32 extra = r->in > fixed ? r->in - fixed : 0;
  u32 room = r->out > bytes ? r->out - bytes : 0;
  for (u32 i = 0; i < room; i++) r->bytes[bytes + i] = i < extra ? (u8)~r->bytes[bytes + i] : 0;
  r->information = bytes + room;
  return STATUS_SUCCESS;
}

static NTSTATUS created(Request *r, u8 kind, const u64 *parents, u32 count, u32 size) {
  Object *o = make(r, kind, parents, count);
  if (!o) return STATUS_INSUFFICIENT_RESOURCES;
  put(r->bytes, id_of(o), 8);
  put(r->bytes + 8, 0x5a, 4);
  return reply(r, size, size);
}

static NTSTATUS query_device(Request *r) {
  fill(r->bytes, 148, 1);
  put_be(r->bytes + 8, STANDIN_GUID, 8);
  r->bytes[148] = 15;
  r->bytes[149] = 1;
  put(r->bytes + 150, 0, 2);
  /* Limits that programs can use. */
  for (u32 at = 56; at < 144; at += 4) put(r->bytes + at, 1000 + at, 4);
  put(r->bytes + 84, 16, 4);
  put(r->bytes + 92, 16, 4);
  put(r->bytes + 96, 64, 4);
  r->information = 152;
  return STATUS_SUCCESS;
}

static NTSTATUS list(Request *r, u32 size, u32 count) {
  u32 room = r->out / size, n = room < count ? room : count;
  for (u32 i = 0; i < n; i++) {
    if (size == 2) put_be(r->bytes + 2 * i, i ? 0x8001 : 0xffff, 2);
    else {
      put_be(r->bytes + 16 * i, i ? 0 : 0xfe80000000000000ull, 8);
      put_be(r->bytes + 16 * i + 8, i ? 0x0000ffff0a000001ull : 0x0202c9fffe0f1234ull, 8);
    }
  }
  r->information = n * size;
  return n < count ? STATUS_MORE_ENTRIES : STATUS_SUCCESS;
}

static NTSTATUS query_ports(Request *r, u32 fn) {
  if (r->bytes[8] != 1) return STATUS_INVALID_PORT_HANDLE;
  if (fn == 7) return list(r, 16, 2);
  if (fn == 8) return list(r, 2, 2);
  fill(r->bytes, 49, 3);
  put(r->bytes + 49, 0, 3);
  put(r->bytes + 8, 4096, 4);
  put(r->bytes + 12, 1024, 4);
  put(r->bytes + 16, 2, 4);
  put(r->bytes + 32, 2, 2);
  r->information = 52;
  return STATUS_SUCCESS;
}

static NTSTATUS create_qp(Request *r) {
  u64 parents[4] = {get(r->bytes, 8), get(r->bytes + 16, 8), get(r->bytes + 24, 8), get(r->bytes + 32, 8)};
  if (!find(r, parents[1], CQ) || !find(r, parents[2], CQ)) return STATUS_NOT_FOUND;
  if (parents[3] && !find(r, parents[3], SRQ)) return STATUS_NOT_FOUND;
  if (!(expect(r->bytes[68] == 0 || r->bytes[68] == 1 || r->bytes[68] == 3, "QpType") & expect(r->bytes[69] < 4, "QpFlags") &
        expect(get(r->bytes + 40, 4) > 0, "SendDepth")))
    return STATUS_INVALID_PARAMETER;
  {
    u8 type = r->bytes[68];
    NTSTATUS status = created(r, QP, parents, 4, 72);
    if (NT_SUCCESS(status)) objects[get(r->bytes, 8) - 1].type = type;
    return status;
  }
}

/* Returns the value of the provider's state variable: the new state, and the Q_Key (UD) or the peer's QPN. */
static NTSTATUS modify_qp(Request *r, Object *o) {
  u32 state = r->bytes[50], qkey = (u32)get_be(r->bytes + 60, 4), peer = (u32)get_be(r->bytes + 56, 4);
  if (!expect(state <= STATE_ERROR, "QP_MODIFY QpState")) return STATUS_INVALID_PARAMETER;
  if (o->type == 3 && state == 1) o->other = qkey;
  if (o->type != 3 && state == 2) o->other = peer;
  o->data = state;
  RtlZeroMemory(r->bytes, r->out);
  if (r->out >= 4) put(r->bytes, state, 4);
  if (r->out >= 8) put(r->bytes + 4, o->other, 4);
  r->information = r->out;
  return STATUS_SUCCESS;
}

static NTSTATUS bind(Request *r, Object *o) {
  u8 *address = r->bytes + 8;
  if (!good_address(address)) return STATUS_INVALID_PARAMETER;
  if (!expect(get_be(r->bytes + 40, 8) == STANDIN_GUID, "EP_BIND DeviceGuid") | !expect(r->bytes[50] == 1, "EP_BIND PortNumber"))
    return STATUS_NO_SUCH_DEVICE;
  if (get_be(address + 2, 2) == 0) put_be(address + 2, 40000 + id_of(o), 2);
  RtlCopyMemory(o->address, address, 28);
  r->information = 56;
  return STATUS_SUCCESS;
}

static NTSTATUS query_ep(Request *r, Object *o) {
  if (r->out < 160) return STATUS_BUFFER_TOO_SMALL;
  RtlZeroMemory(r->bytes, r->out);
  r->information = 160;
  if (simulated_attributes(o, r->bytes)) return STATUS_SUCCESS;
  RtlCopyMemory(r->bytes, o->address, 28);
  RtlCopyMemory(r->bytes + 32, o->peer, 28);
  put_be(r->bytes + 64, STANDIN_GUID, 8);
  put_be(r->bytes + 72, 0xffff, 2);
  r->bytes[74] = 1;
  put(r->bytes + 80, 4, 8);
  put(r->bytes + 88, 3, 8);
  r->bytes[96] = 7;
  r->bytes[97] = 6;
  r->bytes[98] = 5;
  RtlCopyMemory(r->bytes + 104, "hello", 5);
  return STATUS_SUCCESS;
}

static NTSTATUS endpoint(Request *r, u32 fn, Object *o) {
  u64 second = get(r->bytes + 8, 8);
  NTSTATUS played;
  if (fn == 42 && (!good_address(r->bytes + 16) || !good_param(r->bytes + 48))) return STATUS_INVALID_PARAMETER;
  if (fn == 43 && !good_param(r->bytes + 16)) return STATUS_INVALID_PARAMETER;
  if ((fn == 42 || fn == 43) && !find(r, second, QP)) return STATUS_NOT_FOUND;
  played = simulate_endpoint(r, fn, o);
  if (played != STATUS_NOT_IMPLEMENTED) return played;
  switch (fn) {
    case 39:
      if (!expect(get(r->bytes + 12, 4) == 1, "EP_MODIFY option")) return STATUS_INVALID_PARAMETER;
      return expect(r->in == 80, "EP_MODIFY path record") ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL;
    case 40: return bind(r, o);
    case 41: return STATUS_SUCCESS;
    case 42:
      RtlCopyMemory(o->peer, r->bytes + 16, 28);
      return STATUS_PENDING;
    case 43:
      r->information = r->out;
      return STATUS_PENDING;
    case 44:
      if (second && !find(r, second, QP)) return STATUS_NOT_FOUND;
      r->information = r->out;
      return STATUS_PENDING;
    case 46: return query_ep(r, o);
    case 51: return STATUS_SUCCESS;
    case 52: return find(r, second, EP) ? STATUS_PENDING : STATUS_NOT_FOUND;
  }
  return STATUS_PENDING;
}

static NTSTATUS memory(Request *r, u32 fn, u64 id) {
  if (fn == 13) {
    Object *o;
    u32 access = (u32)get(r->bytes + 24, 4);
    if (!(expect(get(r->bytes + 8, 8) != 0, "MEMORY_REGISTER Address") & expect(get(r->bytes + 16, 8) != 0, "BufferLength") &
          expect((access & ~0x8000001fu) == 0, "AccessFlags")))
      return STATUS_INVALID_PARAMETER;
    o = make(r, MR, &id, 1);
    if (!o) return STATUS_INSUFFICIENT_RESOURCES;
    objects[id - 1].users--; /* registrations do not keep their PD busy */
    o->parents[0] = 0;
    o->data = (u32)id;
    o->start = get(r->bytes + 8, 8);
    o->length = get(r->bytes + 16, 8);
    o->access = access;
    put(r->bytes, 0x1000 + id_of(o), 4);
    put_be(r->bytes + 4, 0x2000 + id_of(o), 4);
    r->information = 8;
    return STATUS_SUCCESS;
  }
  {
    Object *o = find(r, get(r->bytes + 12, 4) - 0x1000, MR);
    if (!o || o->data != id) return STATUS_NOT_FOUND;
    drop(o);
    return STATUS_SUCCESS;
  }
}

NTSTATUS find_region(Request *r) {
  u32 key = (u32)get(r->bytes, 4), remote = (u32)get(r->bytes + 4, 4);
  Object *o = object_of(NULL, key - (remote ? 0x2000 : 0x1000), MR);
  if (!o) return STATUS_NOT_FOUND;
  put(r->bytes, o->start, 8);
  put(r->bytes + 8, o->length, 8);
  put(r->bytes + 16, o->access, 4);
  put(r->bytes + 20, o->data, 4);
  r->information = 24;
  return STATUS_SUCCESS;
}

static NTSTATUS one_object(Request *r, u32 fn, Object *o) {
  u64 id = id_of(o);
  switch (fn) {
    case 4: case 12: case 16: case 18: case 20: case 25: case 31: case 38:
      if (o->users) return STATUS_DEVICE_BUSY;
      finish_waiting(r->file, id, ~0u, STATUS_CANCELLED, 0);
      drop(o);
      return STATUS_SUCCESS;
    case 10: case 23: case 29: case 36: case 50: case 53:
      finish_waiting(r->file, id, ~0u, STATUS_CANCELLED, 0);
      return STATUS_SUCCESS;
    case 5: return query_device(r);
    case 6: case 7: case 8: return query_ports(r, fn);
    case 9:
      if (get(r->bytes + 12, 4) != 1) return STATUS_INVALID_PORT_HANDLE;
      put(r->bytes, 0x2, 4);
      r->information = 4;
      return STATUS_PENDING;
    case 11: return created(r, PD, &id, 1, 16);
    case 13: case 14: return memory(r, fn, id);
    case 15: {
      NTSTATUS status = created(r, MW, &id, 1, 16);
      put_be(r->bytes + 12, 0x300000 + get(r->bytes, 8) * 256, 4);
      return status;
    }
    case 17: return good_av(r->bytes + 16) ? created(r, AH, &id, 1, 64) : STATUS_INVALID_PARAMETER;
    case 19: case 21:
      if (!expect(get(r->bytes + 12, 4) > 0, "CQ entries")) return STATUS_INVALID_PARAMETER;
      return fn == 19 ? created(r, CQ, &id, 1, 16) : reply(r, 16, 16);
    case 22: return expect(get(r->bytes + 12, 4) <= 2, "CQ_NOTIFY type") ? STATUS_PENDING : STATUS_INVALID_PARAMETER;
    case 24: return created(r, SRQ, &id, 1, 32);
    case 26:
      put(r->bytes + 16, 100, 4);
      put(r->bytes + 20, 4, 4);
      put(r->bytes + 24, 7, 4);
      return reply(r, 32, 32);
    case 27: return reply(r, 32, 32);
    case 28: return STATUS_PENDING;
    case 30: return create_qp(r);
    case 32:
      RtlZeroMemory(r->bytes, 192);
      put(r->bytes, id, 8);
      r->bytes[49] = r->bytes[50] = (u8)o->data;
      put_be(r->bytes + 52, QPN_BASE + id, 4);
      r->information = 192;
      return STATUS_SUCCESS;
    case 33: return modify_qp(r, o);
    case 34: case 35: return STATUS_SUCCESS;
  }
  return STATUS_NOT_IMPLEMENTED;
}

static NTSTATUS no_object(Request *r, u32 fn) {
  switch (fn) {
    case 1:
      put(r->bytes, 1, 8);
      put_be(r->bytes + 8, STANDIN_GUID, 8);
      r->information = 16;
      return STATUS_SUCCESS;
    case 2:
      if (get_be(r->bytes, 8) != STANDIN_GUID) return STATUS_NO_SUCH_DEVICE;
      if (r->out < 8) return STATUS_BUFFER_TOO_SMALL;
      RtlCopyMemory(r->bytes, "standin", 8);
      r->information = 8;
      return STATUS_SUCCESS;
    case 3: return get_be(r->bytes, 8) == STANDIN_GUID ? created(r, DEVICE, NULL, 0, 16) : STATUS_NO_SUCH_DEVICE;
    case 37:
      if (!expect(get(r->bytes, 8) == 0x106 || get(r->bytes, 8) == 0x111, "EpType")) return STATUS_INVALID_PARAMETER;
      put(r->bytes, id_of(make(r, EP, NULL, 0)), 8);
      r->information = 8;
      return STATUS_SUCCESS;
  }
  return STATUS_NOT_IMPLEMENTED;
}

static NTSTATUS ibat(Request *r) {
  u32 fixed = r->code == IBAT_PATH ? 60 : 32, out = r->code == IBAT_PATH ? 64 : 24;
  if (r->in < fixed || r->out < out) return STATUS_BUFFER_TOO_SMALL;
  if (!expect(get(r->bytes, 4) == 6, "IBAT version")) return STATUS_INVALID_PARAMETER;
  if (!good_address(r->bytes + 4)) return STATUS_INVALID_PARAMETER;
  if (r->code == IBAT_IP_TO_PORT) {
    if (get(r->bytes + 4, 2) == 2 && r->bytes[8] == 9) return STATUS_NOT_FOUND; /* no device has 9.x */
    RtlZeroMemory(r->bytes, 24);
    put_be(r->bytes, STANDIN_GUID, 8);
    put_be(r->bytes + 8, STANDIN_GUID + 1, 8);
    put_be(r->bytes + 16, 0xffff, 2);
    r->bytes[18] = 1;
  } else {
    u8 to[28];
    if (!good_address(r->bytes + 32)) return STATUS_INVALID_PARAMETER;
    RtlCopyMemory(to, r->bytes + 32, 28);
    RtlZeroMemory(r->bytes, 64);
    put_be(r->bytes + 16, 0xffff, 2 + 2);
    RtlCopyMemory(r->bytes + 20, to + 4, 4);
    put_be(r->bytes + 32, 0xffff, 4);
    put_be(r->bytes + 36, 0x7f000001, 4);
  }
  r->information = out;
  return STATUS_SUCCESS;
}

NTSTATUS model(Request *r) {
  u32 fn = (r->code - WINVERBS_CODE) / 4;
  const Row *row;
  Object *o;
  if (r->code == IBAT_IP_TO_PORT || r->code == IBAT_PATH) return ibat(r);
  if (r->code < WINVERBS_CODE || (r->code & 3) || fn == 0 || fn >= ROWS) return STATUS_PROCEDURE_NOT_FOUND;
  row = &rows[fn];
  if (r->in < row->in || r->out < row->out) return STATUS_BUFFER_TOO_SMALL;
  /* Other requests must have the exact length. */
  if (!(row->flags & (PROVIDER | EXTRA)) && r->in != row->in) fault(row->name);
  for (int i = 0; i < 6 && row->reserved[i + 1]; i += 2)
    for (u32 at = row->reserved[i]; at < (u32)row->reserved[i] + row->reserved[i + 1]; at++)
      if (r->bytes[at]) fault(row->name);
  if ((row->flags & PROVIDER) && r->in > row->in) r->command = (u32)get(r->bytes + 8, 4);
  if (row->kind == NONE) return no_object(r, fn);
  o = find(r, get(r->bytes, 8), row->kind);
  if (!o) return row->kind == DEVICE ? STATUS_NO_SUCH_DEVICE : STATUS_NOT_FOUND;
  if (row->kind == EP && fn != 38 && fn != 50) return endpoint(r, fn, o);
  return one_object(r, fn, o);
}
