/** One IOCTL in the hands of the filter driver. */
import type { NamedIoctlRow } from '../../ioctl/codes.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { CiUdata } from '../hca-driver/objects.js';
import { DriverFault, Irp, IrpMajor, type RequestorMode } from '../io-manager/irp.js';
import { idOf, type ObjectTable } from './object-table.js';
import type { WvFile } from './objects.js';

/** Calls a verb with an IRP of its own, which is the answer; `done` runs when that completes, maybe at once. */
export function callVerb<T>(
  verb: (irp: Irp<T>) => number,
  done: (status: number, information: T | undefined) => void,
  requestorMode: RequestorMode = 'kernel',
): Irp<T> {
  const irp = new Irp<T>({
    major: IrpMajor.internal,
    requestorMode,
    onComplete: ({ ioStatus }) => done(ioStatus.status, ioStatus.information),
  });
  irp.dispatch(verb);
  return irp;
}

/** Calls a verb that this HCA's driver always completes inline, such as those of a queue pair's state. */
export function callVerbNow<T>(verb: (irp: Irp<T>) => number): {
  status: number;
  information: T | undefined;
} {
  let outcome: { status: number; information: T | undefined } | undefined;
  callVerb<T>(verb, (status, information) => {
    outcome = { status, information };
  });
  if (!outcome) throw new DriverFault('a verb pended that must not');
  return outcome;
}

/** The request, its file, and the five ways to answer it. Handlers return what the answer returns. */
export class Call {
  constructor(
    /** The open file's tables. */
    readonly file: WvFile,
    readonly irp: Irp,
    readonly row: NamedIoctlRow,
    /** The whole input, until the handler returns. */
    readonly input: Uint8Array,
  ) {}

  /** Input behind the fixed structure: provider data, an option's value, private data. */
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

  /** Success (or a status that carries data) with the bytes written to the output. */
  bytes(bytes: Uint8Array, status: number = Status.SUCCESS): number {
    this.irp.output.set(bytes);
    return this.irp.complete(status, bytes.length);
  }

  /** Success with the output structure, and behind it what the provider wrote to {@link udata}'s output. */
  struct<I>(
    layout: { readonly size: number; encode(value: I, out: Uint8Array): Uint8Array },
    value: I,
    udata?: CiUdata,
  ): number {
    layout.encode(value, this.irp.output);
    return this.irp.complete(Status.SUCCESS, layout.size + (udata?.outputSize ?? 0));
  }

  /** Provider data: what came behind the input structure, and the room behind the output structure. */
  udata(): CiUdata {
    return {
      input: this.tail,
      output: this.irp.output.subarray(this.row.output?.size ?? 0),
      outputSize: 0,
    };
  }

  /**
   * Calls a verb; success goes on in `succeeded`, any other status is the request's, unchanged. The verb may do what the
   * request's sender may, except where the filter itself adds to it and says `kernel`.
   */
  verb<T>(
    verb: (irp: Irp<T>) => number,
    succeeded: (information: T) => number,
    requestorMode: RequestorMode = this.irp.requestorMode,
  ): number {
    let answer: number | undefined;
    const inner = callVerb<T>(
      verb,
      (status, information) => {
        this.irp.setCancelRoutine(undefined);
        answer = status === Status.SUCCESS ? succeeded(information as T) : this.fail(status);
      },
      requestorMode,
    );
    if (answer !== undefined) return answer;
    this.irp.markPending();
    this.irp.setCancelRoutine(() => inner.cancel());
    return Status.PENDING;
  }

  /** The object of an id, or StatusError NOT_FOUND. */
  find<T>(table: ObjectTable<T>, id: bigint, missing: number = Status.NOT_FOUND): T {
    const object = table.get(idOf(id));
    if (object === undefined) throw new StatusError(missing, `${this.row.name}: there is no object ${id}`);
    return object;
  }

  /** Throws INSUFFICIENT_RESOURCES if the table takes no more. Asked before anything is made. */
  room<T>(table: ObjectTable<T>): void {
    if (table.full)
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, `${this.row.name}: the file's table is full`);
  }
}

/**
 * Serves one IOCTL: completes its IRP or pends it. A StatusError that it throws before either is the answer.
 */
export type Handler = (call: Call) => number;
