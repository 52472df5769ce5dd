/* A stand-in for winverbs.sys, ibat.sys and an HCA driver: what its files share. Layouts and codes are those of the
 * WinVerbs IOCTL interface, written here a second time and by hand: what the library packs is checked against this. */
#ifndef STANDIN_H
#define STANDIN_H
#include <ntddk.h>

typedef UCHAR u8;
typedef USHORT u16;
typedef ULONG u32;
typedef ULONGLONG u64;

/* For tests, on every device: FILE_DEVICE_UNKNOWN, METHOD_BUFFERED. */
#define TEST(i) ((((u32)FILE_DEVICE_UNKNOWN) << 16) | ((0xa00 + (i)) << 2))
#define TEST_ECHO TEST(0)     /* answers its input */
#define TEST_PEND TEST(1)     /* in: u32 milliseconds until it completes by itself, 0: never; answers its input */
#define TEST_COMPLETE TEST(2) /* in: u32 count, NTSTATUS, u32 bytes: ends the oldest requests that wait */
#define TEST_FAIL TEST(3)     /* in: NTSTATUS, u32 bytes: ends in it at once */
#define TEST_STATS TEST(4)    /* out: u32 waiting, cancelled, opens, closes, objects, faults, scripted */
#define TEST_SCRIPT \
  TEST(5) /* in: u32 code, NTSTATUS, u32 wait, u32 bytes, bytes: the answer to the next request of that code */
#define TEST_LOG \
  TEST(6) /* out: u32 code, u32 input length, u32 output length, u32 0, input: the oldest request not read yet */
#define TEST_STUBBORN TEST(7) /* in: u32: requests that begin to wait from now on cannot be cancelled */
#define TEST_FAULT TEST(8)    /* out: text: the first field that was wrong since the last question */
/* For the stand-in provider, which plays the hardware. */
#define TEST_REGION \
  TEST(9) /* in: u32 key, u32 1: of a peer; out: u64 address, u64 length, u32 access, u32 id of its domain */
#define TEST_CQ_EVENT TEST(10) /* in: u64 id of a CQ: ends the requests that wait for it */

#define WINVERBS_CODE 0x003be000u
#define IBAT_IP_TO_PORT 0x00222010u
#define IBAT_PATH 0x00222018u

/* VerbInfo and first word of the stand-in provider's bytes. */
#define UVP_MAGIC 0x75767031u

#define STANDIN_GUID 0x0002c903000f1234ull

/* One request, while it is looked at. */
typedef struct {
  IRP* irp;
  FILE_OBJECT* file;
  u32 code;
  u8* bytes;
  u32 in, out;
  u32 information;
  /* VerbInfo, where a provider's bytes follow. */
  u32 command;
} Request;

enum Kind { NONE, DEVICE, PD, MR, MW, AH, CQ, SRQ, QP, EP };

typedef struct {
  FILE_OBJECT* file;
  u8 kind, users;
  u64 parents[4];
  /* Of a registration its domain, of a queue pair its state. */
  u32 data;
  u8 address[28], peer[28];
  /* A registration. */
  u64 start, length;
  u32 access;
  /* A queue pair: its type, and the Q_Key or the peer's number. */
  u8 type;
  u32 other;
  /* An endpoint (connections.c). */
  u8 phase;
  u64 peer_ep, listener, qp;
  u8 param[80];
} Object;

u64 id_of(const Object* o);
/* NULL: no object, or one of another kind or file (any file: NULL). */
Object* object_of(FILE_OBJECT* file, u64 id, u8 kind);
/* Calls for each object of a kind until it answers 0. */
void each_object(u8 kind, int (*visit)(Object* o, void* context), void* context);

enum { QPN_BASE = 0x120000, STATE_RTS = 3, STATE_ERROR = 6 };

extern KSPIN_LOCK standin_lock;
extern u32 standin_objects, standin_faults, standin_scripted;
extern int standin_stubborn;

/* Notes a wrong field. */
void fault(const char* text);
/* The text of the first fault since the last call, or "". */
const char* take_fault(void);

void put(u8* at, u64 value, u32 bytes);
u64 get(const u8* at, u32 bytes);
u64 get_be(const u8* at, u32 bytes);
void put_be(u8* at, u64 value, u32 bytes);

/* Ends up to `count` waiting requests: of a file (or any), of an object (or any); answers how many. */
u32 finish_waiting(FILE_OBJECT* file, u64 id, u32 count, NTSTATUS status, u32 bytes);

/* Takes the oldest request of this code that waits for an object; NULL: there is none. */
IRP* take_request(u64 id, u32 fn);
/* Ends a taken request with these bytes as its answer, as far as there is room. */
void finish_request(IRP* irp, NTSTATUS status, const u8* bytes, u32 length);

/* Connections between endpoints of the stand-in. STATUS_NOT_IMPLEMENTED: none of those that are played, tests end the
 * request themselves. */
NTSTATUS play_endpoint(Request* r, u32 fn, Object* o);
/* The attributes of a played endpoint; 0: it is none. */
int played_attributes(const Object* o, u8* attributes);
void endpoint_dropped(Object* o);

/* STATUS_PENDING: the request is to wait for the object that its input begins with. */
NTSTATUS model(Request* r);
void model_closed(FILE_OBJECT* file);
NTSTATUS find_region(Request* r);

#endif
