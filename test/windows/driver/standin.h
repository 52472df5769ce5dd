/* Common declarations of the stand-in for winverbs.sys, ibat.sys and an HCA driver. Layouts and codes are those of the
 * WinVerbs IOCTL interface. They are defined independently of the library, whose requests are checked against them. */
#ifndef STANDIN_H
#define STANDIN_H
#include <ntddk.h>

typedef UCHAR u8;
typedef USHORT u16;
typedef ULONG u32;
typedef ULONGLONG u64;

/* IOCTLs of every device for tests: FILE_DEVICE_UNKNOWN, METHOD_BUFFERED. */
#define TEST(i) ((((u32)FILE_DEVICE_UNKNOWN) << 16) | ((0xa00 + (i)) << 2))
#define TEST_ECHO TEST(0)     /* returns its input */
#define TEST_PEND TEST(1)     /* in: u32 ms until it completes by itself, 0: never; returns its input */
#define TEST_COMPLETE TEST(2) /* in: u32 count, NTSTATUS, u32 bytes: completes the oldest pending requests */
#define TEST_FAIL TEST(3)     /* in: NTSTATUS, u32 bytes: completes at once with this status */
#define TEST_STATS TEST(4)    /* out: u32 waiting, cancelled, opens, closes, objects, faults, scripted */
#define TEST_SCRIPT \
  TEST(5) /* in: u32 code, NTSTATUS, u32 wait, u32 bytes, bytes: the reply to the next request with that code */
#define TEST_LOG \
  TEST(6) /* out: u32 code, u32 input length, u32 output length, u32 0, input: the oldest unread request */
#define TEST_STUBBORN TEST(7) /* in: u32: 1: requests that pend from now on cannot be cancelled */
#define TEST_FAULT TEST(8)    /* out: text: the first wrong field since the last call */
/* For the stand-in provider, which contains the HCA. */
#define TEST_REGION \
  TEST(9) /* in: u32 key, u32: 1 for an rkey; out: u64 address, u64 length, u32 access, u32 id of its PD */
#define TEST_CQ_EVENT TEST(10) /* in: u64 id of a CQ: completes its notifications */

#define WINVERBS_CODE 0x003be000u
#define IBAT_IP_TO_PORT 0x00222010u
#define IBAT_PATH 0x00222018u

/* The VerbInfo and the first word of the stand-in provider's bytes. */
#define UVP_MAGIC 0x75767031u

#define STANDIN_GUID 0x0002c903000f1234ull

/* A request that is being processed. */
typedef struct {
  IRP* irp;
  FILE_OBJECT* file;
  u32 code;
  u8* bytes;
  u32 in, out;
  u32 information;
  /* VerbInfo, if a provider's bytes follow. */
  u32 command;
} Request;

enum Kind { NONE, DEVICE, PD, MR, MW, AH, CQ, SRQ, QP, EP };

typedef struct {
  FILE_OBJECT* file;
  u8 kind, users;
  u64 parents[4];
  /* The PD of a registration; the state of a queue pair. */
  u32 data;
  u8 address[28], peer[28];
  /* For registrations. */
  u64 start, length;
  u32 access;
  /* For queue pairs: the type, and the Q_Key (UD) or the peer's QPN. */
  u8 type;
  u32 other;
  /* For endpoints (connections.c). */
  u8 phase;
  u64 peer_ep, listener, qp;
  u8 param[80];
} Object;

u64 id_of(const Object* o);
/* Returns the object with an id; NULL if it does not exist, or has another kind or file. File NULL: any. */
Object* object_of(FILE_OBJECT* file, u64 id, u8 kind);
/* Calls `use` for each object of a kind until it returns 0. */
void each_object(u8 kind, int (*use)(Object* o, void* context), void* context);

enum { QPN_BASE = 0x120000, STATE_RTS = 3, STATE_ERROR = 6 };

extern KSPIN_LOCK standin_lock;
extern u32 standin_objects, standin_faults, standin_scripted;
extern int standin_stubborn;

/* Records a wrong field. */
void fault(const char* text);
/* Returns the first fault since the last call, or "". */
const char* take_fault(void);

void put(u8* at, u64 value, u32 bytes);
u64 get(const u8* at, u32 bytes);
u64 get_be(const u8* at, u32 bytes);
void put_be(u8* at, u64 value, u32 bytes);

/* Completes at most `count` pending requests of a file (NULL: any) and an object (0: any). Returns their number. */
u32 finish_waiting(FILE_OBJECT* file, u64 id, u32 count, NTSTATUS status, u32 bytes);

/* Removes and returns the oldest pending request of a function for an object; NULL if there is none. */
IRP* take_request(u64 id, u32 fn);
/* Completes a removed request with as many of these bytes as fit in its buffer. */
void finish_request(IRP* irp, NTSTATUS status, const u8* bytes, u32 length);

/* Executes a request of an endpoint for connections between endpoints of the stand-in. Returns STATUS_NOT_IMPLEMENTED
 * if it is not simulated; tests then complete it. */
NTSTATUS simulate_endpoint(Request* r, u32 fn, Object* o);
/* Writes the attributes of a simulated endpoint; returns 0 if it is not one. */
int simulated_attributes(const Object* o, u8* attributes);
void endpoint_dropped(Object* o);

/* Executes a request. STATUS_PENDING: it must wait for the object whose id is at the start of its input. */
NTSTATUS model(Request* r);
void model_closed(FILE_OBJECT* file);
NTSTATUS find_region(Request* r);

#endif
