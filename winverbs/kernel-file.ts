import type { DeviceFile } from '../kernel-bridge/door/device-file.js';
import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { UmvBuffer } from '../kernel-bridge/door/user-verbs.js';
import { ioctlName } from '../kernel-bridge/ioctl/codes.js';
import type { Fields, FieldsInput, FieldsValue, Struct } from '../kernel-bridge/ioctl/layout.js';
import { WvIoObject } from '../kernel-bridge/ioctl/structs.js';
import { readVerbInfo, writeVerbInfo } from '../kernel-bridge/ioctl/verb-info.js';
import { ENDPOINT_REQUIREMENTS } from './explain.js';
import { Status, StatusError, toWvError, WvError } from './status.js';

/** Maximum number of kept request buffers; verbs use few different lengths. */
const KEPT_LENGTHS = 16;

/** The requests that may need a UDP socket. */
const NEEDS_SOCKET: ReadonlySet<string> = new Set([
  ...['EP_BIND', 'EP_LISTEN', 'EP_CONNECT', 'EP_LOOKUP', 'QP_CREATE', 'QP_MODIFY', 'AH_CREATE'],
]);
const WITHOUT_SOCKET =
  "Not supported with the option link 'local', because this process then has no UDP socket. Use link 'auto' for non-loopback addresses, " +
  'other hosts, datagram queue pairs and multicast groups.';

/** The UVP's part in an IOCTL that carries provider data. */
export interface VerbHooks<I extends Fields, O extends Fields> {
  /**
   * Step 1: the pre hook; returns the IOCTL's values. If it throws, neither the IOCTL nor the post hook is executed.
   */
  pre(umv: UmvBuffer): FieldsInput<I>;
  /** Step 5: the post hook, with the IOCTL's status. `reply` is undefined when the IOCTL failed. */
  post(status: number, umv: UmvBuffer, reply: FieldsValue<O> | undefined): void;
  /** Returns the error of a refused IOCTL with the name of the wrong parameter. */
  explain?(error: unknown): unknown;
  /** Reverts the verb after the IOCTL succeeded and the post hook threw. */
  undo?(reply: FieldsValue<O>): void;
}

function statusOf(error: unknown): number {
  return error instanceof StatusError ? error.status : Status.UNSUCCESSFUL;
}

/** State shared by all views of a file. */
interface Shared {
  /** Objects whose destruction the kernel refused for now (DEVICE_BUSY); retried with every later destruction. */
  leftover: { code: number; input: Uint8Array }[];
  /** Reused request buffers by length. */
  readonly requests: Map<number, Uint8Array>;
}

/** A device file for the objects of one provider: it sends IOCTLs and throws WvErrors. */
export class KernelFile {
  constructor(
    /** The file itself, for requests that this class does not cover. */
    readonly file: DeviceFile,
    private readonly shared: Shared = { leftover: [], requests: new Map() },
    private readonly deviceName?: () => string | undefined,
  ) {}

  /**
   * Returns the same file for requests of a device, which NOT_SUPPORTED errors then name. `name` is called only for
   * those; it may return undefined.
   */
  ofDevice(name: () => string | undefined): KernelFile {
    return new KernelFile(this.file, this.shared, name);
  }

  private error(error: StatusError, request: string): WvError;
  private error(error: unknown, request: string): unknown;
  private error(error: unknown, request: string): unknown {
    const failure = toWvError(error, request);
    const required = ENDPOINT_REQUIREMENTS[request];
    if (
      required !== undefined &&
      failure instanceof WvError &&
      failure.status === Status.INVALID_DEVICE_STATE
    )
      return new WvError(failure.status, `${request}: ${required}`, { cause: error });
    if (!(failure instanceof WvError) || failure.status !== Status.NOT_SUPPORTED) return failure;
    if (this.file.localOnly && NEEDS_SOCKET.has(request))
      return new WvError(failure.status, `${request}: ${WITHOUT_SOCKET}`, { cause: error });
    const device = this.deviceName?.();
    if (device === undefined) return failure;
    const text = `${request}: The device ${device} does not support this.`;
    return new WvError(failure.status, text, { cause: error });
  }

  /** See {@link DeviceFile.extended}. */
  get extended(): boolean {
    return this.file.extended;
  }

  /** Sends a blocking IOCTL. No lock is held while it waits, so other requests and cancellation proceed. */
  call(code: number, input: Uint8Array | null, outputLength = 0, outputAt?: number): Uint8Array {
    try {
      return this.file.ioctl(code, input, outputLength, outputAt);
    } catch (error) {
      throw this.error(error, ioctlName(code));
    }
  }

  /** Sends a blocking IOCTL whose input is only the object's ID. */
  callId(code: number, id: bigint, outputLength = 0): Uint8Array {
    return this.call(code, WvIoObject.encodeOnce({ id }), outputLength);
  }

  /** Sends a blocking IOCTL whose input has two parts. */
  callWith(code: number, head: Uint8Array, tail: Uint8Array, outputLength = 0): Uint8Array {
    const input = this.bytes(head.length + tail.length);
    input.set(head);
    input.set(tail, head.length);
    return this.call(code, input, outputLength);
  }

  /** Sends an overlapped IOCTL. `onFailure` may return a more specific error than that of the status. */
  overlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    onFailure?: (error: WvError) => unknown,
    outputAt?: number,
  ): Overlapped<T> {
    const name = ioctlName(code);
    try {
      return this.file
        .ioctlOverlapped(code, input, outputLength, decode, outputAt)
        .translateFailure((error) => {
          const failure = this.error(error, name);
          const better = onFailure?.(failure);
          return better instanceof StatusError ? better : failure;
        });
    } catch (error) {
      throw this.error(error, name);
    }
  }

  /**
   * Executes a verb with provider data in WinVerbs' five steps: pre hook, structure followed by the provider's bytes,
   * one IOCTL, status and provider's reply, post hook. The IOCTL's status and the driver's status in VerbInfo are
   * separate. A failed IOCTL copies nothing back, so its post hook gets no reply. `umv` is a buffer that a pre hook has
   * already filled.
   */
  verb<I extends Fields, O extends Fields>(
    code: number,
    input: Struct<I>,
    output: Struct<O>,
    hooks: VerbHooks<I, O>,
    umv = new UmvBuffer(),
  ): FieldsValue<O> {
    const name = ioctlName(code);
    let values: FieldsInput<I>;
    try {
      values = hooks.pre(umv);
    } catch (error) {
      throw toWvError(error, name);
    }
    let reply: FieldsValue<O>;
    try {
      const request = this.bytes(input.size + umv.input.length);
      request.set(input.encodeOnce(values));
      writeVerbInfo(request, umv.command);
      request.set(umv.input, input.size);
      const answer = this.file.ioctl(code, request, output.size + umv.outputSize);
      reply = output.decode(answer);
      umv.status = readVerbInfo(answer);
      umv.output = answer.subarray(output.size);
    } catch (error) {
      try {
        hooks.post(statusOf(error), umv, undefined);
      } catch {
        // The first error is the one that is reported.
      }
      const refused = this.error(error, name);
      throw hooks.explain?.(refused) ?? refused;
    }
    try {
      hooks.post(Status.SUCCESS, umv, reply);
    } catch (error) {
      hooks.undo?.(reply);
      throw toWvError(error, `${name}, user-mode provider`);
    }
    return reply;
  }

  /** Returns a reused buffer for a request; the request is copied when it is sent. */
  private bytes(length: number): Uint8Array {
    const { requests } = this.shared;
    let bytes = requests.get(length);
    if (bytes === undefined) {
      bytes = new Uint8Array(new ArrayBuffer(length));
      if (requests.size < KEPT_LENGTHS) requests.set(length, bytes);
    }
    return bytes;
  }

  /** Destroys a kernel object; never fails. The post hook gets the status. */
  destroy(code: number, id: bigint, post?: (status: number) => void): void {
    this.destroyBy(code, WvIoObject.encodeOnce({ id }), post);
  }

  /** The same as {@link destroy}, for an object that needs more than an ID to identify it. */
  destroyBy(code: number, input: Uint8Array, post?: (status: number) => void): void {
    const status = this.tryDestroy(code, input);
    const { shared } = this;
    if (status === Status.DEVICE_BUSY) shared.leftover.push({ code, input: input.slice() });
    else if (shared.leftover.length > 0) {
      shared.leftover = shared.leftover.filter(
        (object) => this.tryDestroy(object.code, object.input) === Status.DEVICE_BUSY,
      );
    }
    post?.(status);
  }

  /** Closes the file; the kernel frees the remaining objects. */
  close(): void {
    this.file.close();
  }

  private tryDestroy(code: number, input: Uint8Array): number {
    try {
      this.file.ioctl(code, input, 0);
      return Status.SUCCESS;
    } catch (error) {
      return statusOf(error);
    }
  }
}
