/* A stand-in for winverbs.sys, ibat.sys and an HCA driver: what its files share. Layouts and codes are those of the WinVerbs IOCTL interface,
 * written here a second time and by hand: what the library packs is checked against this. */
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
#define TEST_SCRIPT TEST(5)   /* in: u32 code, NTSTATUS, u32 wait, u32 bytes, bytes: the answer to the next request of that code */
#define TEST_LOG TEST(6)      /* out: u32 code, u32 input length, u32 output length, u32 0, input: the oldest request not read yet */
#define TEST_STUBBORN TEST(7) /* in: u32: requests that begin to wait from now on cannot be cancelled */
#define TEST_FAULT TEST(8)    /* out: text: the first field that was wrong since the last question */

#define WINVERBS_CODE 0x003be000u
#define IBAT_IP_TO_PORT 0x00222010u
#define IBAT_PATH 0x00222018u

#define STANDIN_GUID 0x0002c903000f1234ull

/* One request, while it is looked at. */
typedef struct {
  IRP *irp;
  FILE_OBJECT *file;
  u32 code;
  u8 *bytes;
  u32 in, out;
  u32 information;
} Request;

extern KSPIN_LOCK standin_lock;
extern u32 standin_objects, standin_faults, standin_scripted;
extern int standin_stubborn;

/* Notes a wrong field. */
void fault(const char *text);
/* The text of the first fault since the last call, or "". */
const char *take_fault(void);

void put(u8 *at, u64 value, u32 bytes);
u64 get(const u8 *at, u32 bytes);
u64 get_be(const u8 *at, u32 bytes);
void put_be(u8 *at, u64 value, u32 bytes);

/* Ends up to `count` waiting requests: of a file (or any), of an object (or any); answers how many. */
u32 finish_waiting(FILE_OBJECT *file, u64 id, u32 count, NTSTATUS status, u32 bytes);

/* STATUS_PENDING: the request is to wait for the object that its input begins with. */
NTSTATUS model(Request *r);
void model_closed(FILE_OBJECT *file);

#endif
