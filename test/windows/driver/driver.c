/* Devices, pending requests, scripted replies and the log. */
#include "standin.h"

KSPIN_LOCK standin_lock;
u32 standin_objects, standin_faults, standin_scripted;
int standin_stubborn;

static LIST_ENTRY waiting, scripts, records;
static u32 now_waiting, cancelled, opens, closes, recorded;
static const char *first_fault = "";

typedef struct {
  LIST_ENTRY entry;
  u32 code, status, wait, length;
  u8 bytes[1];
} Script;

typedef struct {
  LIST_ENTRY entry;
  u32 code, in, out;
  u8 bytes[1];
} Record;

enum { MOST_RECORDS = 20000, DEVICES = 3 };
static DEVICE_OBJECT *devices[DEVICES];
static const WCHAR *const names[DEVICES] = {L"\\Device\\WinVerbs", L"\\Device\\ibat", L"\\Device\\ibal\\0002c903000f1234"};
static const WCHAR *const links[DEVICES] = {L"\\DosDevices\\WinVerbs", L"\\DosDevices\\ibat", NULL};

void put(u8 *at, u64 value, u32 bytes) {
  for (u32 i = 0; i < bytes; i++) at[i] = (u8)(value >> (8 * i));
}

u64 get(const u8 *at, u32 bytes) {
  u64 value = 0;
  for (u32 i = 0; i < bytes; i++) value |= (u64)at[i] << (8 * i);
  return value;
}

void put_be(u8 *at, u64 value, u32 bytes) {
  for (u32 i = 0; i < bytes; i++) at[i] = (u8)(value >> (8 * (bytes - 1 - i)));
}

u64 get_be(const u8 *at, u32 bytes) {
  u64 value = 0;
  for (u32 i = 0; i < bytes; i++) value = value << 8 | at[i];
  return value;
}

static void copy(u8 *to, const u8 *from, u32 bytes) {
  for (u32 i = 0; i < bytes; i++) to[i] = from[i];
}

void fault(const char *text) {
  standin_faults++;
  if (!*first_fault) first_fault = text;
}

const char *take_fault(void) {
  const char *text = first_fault;
  first_fault = "";
  return text;
}

static void finish(IRP *irp, NTSTATUS status, ULONG_PTR information) {
  irp->IoStatus.Status = status;
  irp->IoStatus.Information = information;
  IoCompleteRequest(irp, IO_NO_INCREMENT);
}

/* Data of a pending request: the id of its object, and the number of bytes in its buffer that it returns. */
#define WAITS_FOR(irp) ((irp)->Tail.Overlay.DriverContext[0])
#define REPLY_BYTES(irp) ((irp)->Tail.Overlay.DriverContext[1])
#define STUBBORN(irp) ((irp)->Tail.Overlay.DriverContext[2])

static void unlink_waiting(IRP *irp) {
  RemoveEntryList(&irp->Tail.Overlay.ListEntry);
  now_waiting--;
}

static VOID NTAPI on_cancel(DEVICE_OBJECT *device, IRP *irp) {
  KIRQL irql;
  IoReleaseCancelSpinLock(irp->CancelIrql);
  KeAcquireSpinLock(&standin_lock, &irql);
  unlink_waiting(irp);
  cancelled++;
  KeReleaseSpinLock(&standin_lock, irql);
  finish(irp, STATUS_CANCELLED, 0);
}

static IRP *take_waiting(FILE_OBJECT *file, u64 id, IRP *only, u32 code) {
  KIRQL irql;
  IRP *found = NULL;
  KeAcquireSpinLock(&standin_lock, &irql);
  for (LIST_ENTRY *e = waiting.Flink; e != &waiting; e = e->Flink) {
    IRP *irp = CONTAINING_RECORD(e, IRP, Tail.Overlay.ListEntry);
    if (only && irp != only) continue;
    if (code && IoGetCurrentIrpStackLocation(irp)->Parameters.DeviceIoControl.IoControlCode != code) continue;
    if (file && IoGetCurrentIrpStackLocation(irp)->FileObject != file) continue;
    if (id && (u64)WAITS_FOR(irp) != id) continue;
    /* A request that is being cancelled no longer has a routine; one that cannot be cancelled never had one. */
    if (IoSetCancelRoutine(irp, NULL) == NULL && irp->Cancel && !STUBBORN(irp)) continue;
    unlink_waiting(irp);
    found = irp;
    break;
  }
  KeReleaseSpinLock(&standin_lock, irql);
  return found;
}

u32 finish_waiting(FILE_OBJECT *file, u64 id, u32 count, NTSTATUS status, u32 bytes) {
  u32 done = 0;
  IRP *irp;
  while (done < count && (irp = take_waiting(file, id, NULL, 0)) != NULL) {
    u32 own = (u32)(ULONG_PTR)REPLY_BYTES(irp);
    finish(irp, status, NT_ERROR(status) ? 0 : bytes ? bytes : own);
    done++;
  }
  return done;
}

IRP *take_request(u64 id, u32 fn) { return take_waiting(NULL, id, NULL, WINVERBS_CODE + 4 * fn); }

void finish_request(IRP *irp, NTSTATUS status, const u8 *bytes, u32 length) {
  u32 room = (u32)(ULONG_PTR)REPLY_BYTES(irp);
  if (length > room) length = room;
  copy(irp->AssociatedIrp.SystemBuffer, bytes, length);
  finish(irp, status, NT_ERROR(status) ? 0 : length);
}

typedef struct {
  IRP *irp;
  u32 milliseconds;
} Later;

static VOID NTAPI complete_later(void *context) {
  Later later = *(Later *)context;
  LARGE_INTEGER time;
  IRP *irp;
  ExFreePool(context);
  time.QuadPart = -10000ll * later.milliseconds;
  KeDelayExecutionThread(KernelMode, FALSE, &time);
  irp = take_waiting(NULL, 0, later.irp, 0);
  if (irp) finish(irp, STATUS_SUCCESS, (u32)(ULONG_PTR)REPLY_BYTES(irp));
  PsTerminateSystemThread(0);
}

static NTSTATUS wait(Request *r, u64 id, u32 milliseconds, u32 reply_bytes) {
  KIRQL irql;
  IRP *irp = r->irp;
  int stubborn = standin_stubborn;
  WAITS_FOR(irp) = (void *)(ULONG_PTR)id;
  REPLY_BYTES(irp) = (void *)(ULONG_PTR)reply_bytes;
  STUBBORN(irp) = stubborn ? irp : NULL;
  IoMarkIrpPending(irp);
  KeAcquireSpinLock(&standin_lock, &irql);
  InsertTailList(&waiting, &irp->Tail.Overlay.ListEntry);
  now_waiting++;
  if (!stubborn) IoSetCancelRoutine(irp, on_cancel);
  KeReleaseSpinLock(&standin_lock, irql);
  if (milliseconds) {
    HANDLE thread;
    Later *later = ExAllocatePool(NonPagedPool, sizeof *later);
    later->irp = irp;
    later->milliseconds = milliseconds;
    if (PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, complete_later, later) == STATUS_SUCCESS) ZwClose(thread);
  }
  return STATUS_PENDING;
}

static void record(const Request *r) {
  Record *record;
  if (recorded >= MOST_RECORDS) return;
  record = ExAllocatePool(NonPagedPool, sizeof *record + r->in);
  record->code = r->code;
  record->in = r->in;
  record->out = r->out;
  copy(record->bytes, r->bytes, r->in);
  InsertTailList(&records, &record->entry);
  recorded++;
}

static NTSTATUS take_record(Request *r) {
  Record *record;
  if (IsListEmpty(&records)) return STATUS_NO_MORE_ENTRIES;
  record = CONTAINING_RECORD(records.Flink, Record, entry);
  if (r->out < 16 + record->in) return STATUS_BUFFER_TOO_SMALL;
  put(r->bytes, record->code, 4);
  put(r->bytes + 4, record->in, 4);
  put(r->bytes + 8, record->out, 4);
  put(r->bytes + 12, 0, 4);
  copy(r->bytes + 16, record->bytes, record->in);
  r->information = 16 + record->in;
  RemoveHeadList(&records);
  recorded--;
  ExFreePool(record);
  return STATUS_SUCCESS;
}

static NTSTATUS add_script(Request *r) {
  u32 length = r->in - 16;
  Script *script = ExAllocatePool(NonPagedPool, sizeof *script + length);
  script->code = (u32)get(r->bytes, 4);
  script->status = (u32)get(r->bytes + 4, 4);
  script->wait = (u32)get(r->bytes + 8, 4);
  script->length = length;
  copy(script->bytes, r->bytes + 16, length);
  InsertTailList(&scripts, &script->entry);
  standin_scripted++;
  return STATUS_SUCCESS;
}

/* Replies from the script if its next reply has the request's code. */
static int scripted(Request *r, NTSTATUS *status) {
  Script *script;
  u32 length;
  if (IsListEmpty(&scripts)) return 0;
  script = CONTAINING_RECORD(scripts.Flink, Script, entry);
  if (script->code != r->code) return 0;
  RemoveHeadList(&scripts);
  standin_scripted--;
  length = script->length < r->out ? script->length : r->out;
  copy(r->bytes, script->bytes, length);
  r->information = length;
  *status = script->wait ? wait(r, 0, 0, length) : (NTSTATUS)script->status;
  ExFreePool(script);
  return 1;
}

static NTSTATUS for_tests(Request *r) {
  switch (r->code) {
    case TEST_ECHO:
      r->information = r->in < r->out ? r->in : r->out;
      return STATUS_SUCCESS;
    case TEST_PEND:
      return wait(r, 0, (u32)get(r->bytes, 4), r->in < r->out ? r->in : r->out);
    case TEST_COMPLETE:
      put(r->bytes, finish_waiting(NULL, 0, (u32)get(r->bytes, 4), (NTSTATUS)get(r->bytes + 4, 4), (u32)get(r->bytes + 8, 4)), 4);
      r->information = r->out < 4 ? 0 : 4;
      return STATUS_SUCCESS;
    case TEST_FAIL:
      r->information = (u32)get(r->bytes + 4, 4);
      return (NTSTATUS)get(r->bytes, 4);
    case TEST_STATS: {
      u32 stats[] = {now_waiting, cancelled, opens, closes, standin_objects, standin_faults, standin_scripted};
      copy(r->bytes, (u8 *)stats, sizeof stats);
      r->information = sizeof stats;
      return STATUS_SUCCESS;
    }
    case TEST_SCRIPT: return add_script(r);
    case TEST_LOG: return take_record(r);
    case TEST_STUBBORN: standin_stubborn = r->bytes[0]; return STATUS_SUCCESS;
    case TEST_REGION: return find_region(r);
    case TEST_CQ_EVENT: finish_waiting(NULL, get(r->bytes, 8), ~0u, STATUS_SUCCESS, 0); return STATUS_SUCCESS;
    case TEST_FAULT: {
      const char *text = take_fault();
      for (r->information = 0; text[r->information]; r->information++) r->bytes[r->information] = text[r->information];
      return STATUS_SUCCESS;
    }
  }
  return STATUS_INVALID_DEVICE_REQUEST;
}

static NTSTATUS NTAPI create(DEVICE_OBJECT *device, IRP *irp) {
  opens++;
  finish(irp, STATUS_SUCCESS, 0);
  return STATUS_SUCCESS;
}

/* Wine does not send IRP_MJ_CLEANUP, so the requests of the file are cancelled here. */
static NTSTATUS NTAPI close_file(DEVICE_OBJECT *device, IRP *irp) {
  FILE_OBJECT *file = IoGetCurrentIrpStackLocation(irp)->FileObject;
  closes++;
  if (!standin_stubborn) cancelled += finish_waiting(file, 0, ~0u, STATUS_CANCELLED, 0);
  model_closed(file);
  finish(irp, STATUS_SUCCESS, 0);
  return STATUS_SUCCESS;
}

static NTSTATUS NTAPI control(DEVICE_OBJECT *device, IRP *irp) {
  IO_STACK_LOCATION *s = IoGetCurrentIrpStackLocation(irp);
  Request r = {irp, s->FileObject, s->Parameters.DeviceIoControl.IoControlCode, irp->AssociatedIrp.SystemBuffer,
               s->Parameters.DeviceIoControl.InputBufferLength, s->Parameters.DeviceIoControl.OutputBufferLength, 0, 0};
  NTSTATUS status;
  if (r.code >= TEST(0) && r.code <= TEST(15)) {
    status = for_tests(&r);
  } else {
    record(&r);
    if (!scripted(&r, &status)) {
      /* Read before the reply overwrites the input. */
      u64 id = r.in < 8 ? 0 : get(r.bytes, 8);
      status = model(&r);
      if (status == STATUS_PENDING) status = wait(&r, id, 0, r.information);
    }
  }
  if (status == STATUS_PENDING) return status;
  finish(irp, status, NT_ERROR(status) ? 0 : r.information);
  return status;
}

static VOID NTAPI unload(DRIVER_OBJECT *driver) {
  /* Requests of open files must complete before their device is deleted. */
  finish_waiting(NULL, 0, ~0u, 0xc00002b6 /* STATUS_DEVICE_REMOVED */, 0);
  for (int i = 0; i < DEVICES; i++) {
    UNICODE_STRING link;
    if (links[i]) {
      RtlInitUnicodeString(&link, links[i]);
      IoDeleteSymbolicLink(&link);
    }
    if (devices[i]) IoDeleteDevice(devices[i]);
  }
}

static void make_directory(void) {
  UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\ibal");
  OBJECT_ATTRIBUTES attributes;
  HANDLE directory;
  InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE, NULL, NULL);
  /* The directory exists as long as the handle is open. */
  ZwCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, &attributes);
}

NTSTATUS NTAPI DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path) {
  NTSTATUS status = STATUS_SUCCESS;
  InitializeListHead(&waiting);
  InitializeListHead(&scripts);
  InitializeListHead(&records);
  KeInitializeSpinLock(&standin_lock);
  make_directory();
  for (int i = 0; i < DEVICES && NT_SUCCESS(status); i++) {
    UNICODE_STRING name, link;
    RtlInitUnicodeString(&name, names[i]);
    status = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &devices[i]);
    if (NT_SUCCESS(status) && links[i]) {
      RtlInitUnicodeString(&link, links[i]);
      status = IoCreateSymbolicLink(&link, &name);
    }
  }
  driver->MajorFunction[IRP_MJ_CREATE] = create;
  driver->MajorFunction[IRP_MJ_CLOSE] = close_file;
  driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = control;
  driver->DriverUnload = unload;
  return status;
}
