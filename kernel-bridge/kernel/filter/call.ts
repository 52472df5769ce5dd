/** One IOCTL, as the filter driver's handlers see it. */
import type { NamedIoctlRow } from '../../ioctl/codes.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { readVerbInfo, writeVerbInfo } from '../../ioctl/verb-info.js';
import type { CiUdata } from '../hca-driver/ib-objects.js';
import { Irp, IrpMajor, type RequestorMode } from '../io-manager/irp.js';
import { idOf, type ObjectTable, type WvFile } from './file-objects.js';

/**
 * Calls a verb with an IRP of its own and returns the IRP; `ended` runs when it completes, possibly before this
 * returns.
 */
export function callVerb<T>(
  verb: (irp: Irp<T>) => number,
  ended: (status: number, information: T | undefined) => void,
  requestorMode: RequestorMode,
): Irp<T> {
  const irp = new Irp<T>({
    major: IrpMajor.internal,
    requestorMode,
    onComplete: ({ ioStatus }) => ended(ioStatus.status, ioStatus.information),
  });
  irp.dispatch(verb);
  return irp;
}

/** The part of a request's IRP that does not depend on its result, for calling a verb. */
interface Request extends Pick<Irp, 'requestorMode' | 'state' | 'markPending'> {
  setCancelRoutine(routine: (() => void) | undefined): unknown;
  complete(status: number): number;
}

/**
 * Calls a verb for a request, in the request's mode. On success `succeeded` completes the request and returns its
 * status. Any other status completes the request after `failed`. The request pends as long as the verb, and cancelling
 * it cancels the verb.
 */
export function callVerbFor<T>(
  request: Request,
  verb: (irp: Irp<T>) => number,
  succeeded: (information: T) => number,
  failed?: (status: number) => void,
): number {
  let answer: number | undefined;
  const irp = new Irp<T>({
    major: IrpMajor.internal,
    requestorMode: request.requestorMode,
    onComplete: ({ ioStatus: { status, information } }) => {
      request.setCancelRoutine(undefined);
      if (status === Status.SUCCESS) answer = succeeded(information as T);
      else {
        failed?.(status);
        answer = request.complete(status);
      }
    },
  });
  irp.dispatch(verb);
  if (answer !== undefined) return answer;
  if (request.state === 'dispatched') request.markPending();
  request.setCancelRoutine(() => irp.cancel());
  return Status.PENDING;
}

/** The structure of an output. */
interface Layout<I> {
  readonly size: number;
  encode(value: I, out: Uint8Array): Uint8Array;
}

/** The request, its file, and the five ways to complete it. Handlers return the result of one of them. */
export class Call {
  constructor(
    /** The object tables of the open file. */
    readonly file: WvFile,
    readonly irp: Irp,
    readonly row: NamedIoctlRow,
    /** The whole input, valid until the handler returns. */
    readonly input: Uint8Array,
  ) {}

  /** Input after the fixed structure: provider data, an option's value, private data. */
  get tail(): Uint8Array {
    return this.input.subarray(this.row.input?.size ?? 0);
  }

  /** Success without output. */
  done(): number {
    return this.irp.complete(Status.SUCCESS, 0);
  }

  fail(status: number): number {
    return this.irp.complete(status);
  }

  /** Success, or a status with data, with these bytes as the output. */
  bytes(bytes: Uint8Array, status: number = Status.SUCCESS): number {
    this.irp.output.set(bytes);
    return this.irp.complete(status, bytes.length);
  }

  /**
   * Success with the output structure, followed by the provider's part in {@link udata}'s output. IoStatus.Information
   * is the number of these bytes, or `information`.
   */
  struct<I>(layout: Layout<I>, value: I, udata?: CiUdata, information?: number): number {
    layout.encode(value, this.irp.output);
    if (udata?.status) writeVerbInfo(this.irp.output, udata.status);
    const bytes = layout.size + (udata?.outputSize ?? 0);
    return this.irp.complete(Status.SUCCESS, information ?? bytes, bytes);
  }

  /** {@link struct} for a new object. On the file of an HCA, IoStatus.Information is the object's id. */
  made<I>(layout: Layout<I>, value: I, id: number, udata?: CiUdata): number {
    return this.struct(layout, value, udata, this.file.hcaDevice && id);
  }

  /** Provider data: the input after the input structure, and the room after the output structure. */
  udata(): CiUdata {
    return {
      command: readVerbInfo(this.input),
      status: 0,
      input: this.tail,
      output: this.irp.output.subarray(this.row.output?.size ?? 0),
      outputSize: 0,
    };
  }

  /** Cancels the file's pending requests whose {@link Irp.driverContext} is this object. */
  cancelPending(object: unknown): void {
    for (const irp of [...(this.irp.stack.fileObject?.outstanding ?? [])]) {
      if (irp.driverContext === object) irp.cancel();
    }
  }

  /** The object with an id. Throws StatusError NOT_FOUND. */
  find<T>(table: ObjectTable<T>, id: bigint, missing: number = Status.NOT_FOUND): T {
    const object = table.get(idOf(id));
    if (object === undefined) throw new StatusError(missing, `${this.row.name}: no object has the id ${id}`);
    return object;
  }

  /** Throws INSUFFICIENT_RESOURCES if the table is full. Call it before creating anything. */
  room<T>(table: ObjectTable<T>): void {
    if (table.full)
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, `${this.row.name}: the file's table is full`);
  }
}

/** Serves one IOCTL: completes its IRP or pends it. A StatusError thrown before either is the result of the request. */
export type Handler = (call: Call) => number;
