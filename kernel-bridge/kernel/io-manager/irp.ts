/**
 * I/O request packets: a request on its way through a driver, with the rules of Windows drivers as a table. A violation
 * is a {@link DriverFault}, which the I/O manager counts and turns into INTERNAL_ERROR, so that a driver's mistake
 * never leaves a caller waiting.
 */
import { Status, statusName } from '../../ioctl/status.js';
import type { FileObject } from './device-object.js';
import { atDispatchLevel, DriverFault } from './irql.js';

/** The kind of request (IRP_MJ_*). */
export const IrpMajor = { create: 0, close: 2, deviceControl: 14, cleanup: 18, internal: 15 } as const;

/**
 * The states of an IRP.
 * - `allocated`: not yet passed to a driver.
 * - `dispatched`: the dispatch routine is running and has neither pended nor completed it.
 * - `marked`: marked pending. The dispatch routine has not returned yet.
 * - `completedInline`: completed without being marked. The routine must return that status.
 * - `completedMarked`: completed after being marked. The routine must return PENDING.
 * - `pending`: the routine has returned PENDING. The driver owns the IRP.
 * - `completed`: final.
 */
export type IrpState =
  | 'allocated'
  | 'dispatched'
  | 'marked'
  | 'completedInline'
  | 'completedMarked'
  | 'pending'
  | 'completed';

/** The events of an IRP; the dispatch routine's return is one of the last two. */
export type IrpEvent = 'dispatch' | 'mark' | 'complete' | 'returnPending' | 'returnStatus';

/** `fault` is the violated rule. */
type Cell = { next: IrpState } | { fault: string };

const twice: Cell = { fault: 'completed twice' };
const late: Cell = { fault: 'marked pending after it was completed' };
const busy: Cell = { fault: 'dispatched while a driver owns it' };
const noDriver: Cell = { fault: 'no driver owns it' };

/** The IRP state machine; every cell is defined. */
export const irpTransitions: Record<IrpState, Record<IrpEvent, Cell>> = {
  allocated: {
    dispatch: { next: 'dispatched' },
    mark: noDriver,
    complete: noDriver,
    returnPending: noDriver,
    returnStatus: noDriver,
  },
  dispatched: {
    dispatch: busy,
    mark: { next: 'marked' },
    complete: { next: 'completedInline' },
    returnPending: { fault: 'returned PENDING without being marked pending' },
    returnStatus: { fault: 'neither completed nor marked pending' },
  },
  marked: {
    dispatch: busy,
    mark: { fault: 'marked pending twice' },
    complete: { next: 'completedMarked' },
    returnPending: { next: 'pending' },
    returnStatus: { fault: 'marked pending, but the routine returned a status other than PENDING' },
  },
  completedInline: {
    dispatch: busy,
    mark: late,
    complete: twice,
    returnPending: { fault: 'returned PENDING without being marked pending' },
    returnStatus: { next: 'completed' },
  },
  completedMarked: {
    dispatch: busy,
    mark: late,
    complete: twice,
    returnPending: { next: 'completed' },
    returnStatus: { fault: 'marked pending, but the routine returned a status other than PENDING' },
  },
  pending: {
    dispatch: busy,
    mark: { fault: 'marked pending after the routine returned' },
    complete: { next: 'completed' },
    returnPending: busy,
    returnStatus: busy,
  },
  completed: { dispatch: busy, mark: late, complete: twice, returnPending: twice, returnStatus: twice },
};

const states = Object.keys(irpTransitions) as IrpState[];
const events = {
  dispatch: 0,
  mark: 1,
  complete: 2,
  returnPending: 3,
  returnStatus: 4,
} as const satisfies Record<IrpEvent, number>;
const eventNames = Object.keys(events) as IrpEvent[];
const at = (state: IrpState): number => states.indexOf(state);
const allocated = at('allocated');
const marked = at('marked');
const completedInline = at('completedInline');
const completedMarked = at('completedMarked');
const completed = at('completed');

/**
 * The table as numbers: the next state's number, or -1 for a fault. Each request takes at least three steps, and names
 * as keys would cost a hash table lookup each.
 */
const nextStates = Int8Array.from(
  states.flatMap((state) =>
    eventNames.map((event) => {
      const cell = irpTransitions[state][event];
      return 'fault' in cell ? -1 : at(cell.next);
    }),
  ),
);

/**
 * The origin of a request. The I/O manager marks requests of the channel `user`, and the filter passes the mark on to
 * the verbs: user requests cannot have callbacks or change a device. Ids, memory and rings are checked in both modes,
 * ids in the file's tables, memory and rings against those of the HCA.
 */
export type RequestorMode = 'user' | 'kernel';

/** The driver's part of an IRP: the parameters of the request. */
export interface IrpStackLocation {
  /** The kind of request (IRP_MJ_*): 0 create, 2 close, 14 IOCTL, 15 verb, 18 cleanup. */
  readonly major: number;
  /** The file of the request; undefined for verbs of kernel clients. */
  readonly fileObject: FileObject | undefined;
  /** The code of an IOCTL; 0 for all others. */
  readonly controlCode: number;
  /** Length of the input in bytes. */
  readonly inputLength: number;
  /** Size of the caller's output buffer in bytes. */
  readonly outputLength: number;
}

/** The result of a request. `information` is a byte count or, for verbs, the new object. */
export interface IoStatus<T> {
  /** The NTSTATUS; PENDING until the request is completed. */
  status: number;
  /** Bytes of output of an IOCTL, or the object created by a verb; undefined before completion. */
  information: T | undefined;
  /** Bytes of output, if `information` is a handle instead. */
  outputBytes: number | undefined;
}

/** The position of a user's request in the channel, for drivers that let the HCA complete it natively. */
export interface NativeSlot {
  readonly slot: number;
  readonly serial: number;
}

/** Called when an IRP is to be cancelled; must complete it. The routine is no longer set then. */
export type CancelRoutine<T> = (irp: Irp<T>) => void;

const noBytes = new Uint8Array(0);

/** Maximum length of reused memory in bytes; longer outputs are rare. */
const LONGEST = 512;
/** Maximum number of free arrays per length; most requests complete before the next is taken. */
const MOST = 4;

/**
 * Reused memory for outputs: free arrays by their length. V8 moves small arrays out of its heap when a view of them is
 * created, and all longer ones; that costs more than clearing used memory.
 */
class OutputMemory {
  readonly #spare = new Map<number, Uint8Array[]>();

  /** Zeroed bytes for exclusive use until they are released. */
  take(length: number): Uint8Array {
    return this.#spare.get(length)?.pop()?.fill(0) ?? new Uint8Array(new ArrayBuffer(length));
  }

  /** Releases bytes. */
  giveBack(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length === 0 || length > LONGEST) return;
    const spare = this.#spare.get(length);
    if (spare === undefined) this.#spare.set(length, [bytes]);
    else if (spare.length < MOST) spare.push(bytes);
  }
}

const outputs = new OutputMemory();

/** More than the tables of a host with thousands of devices or addresses need. Longer output buffers are allowed but not filled. */
const maxSystemBuffer = 1 << 23;

export interface IrpInit<T> {
  major: number;
  requestorMode: RequestorMode;
  fileObject?: FileObject | undefined;
  controlCode?: number;
  /** METHOD_BUFFERED: the request's bytes, valid until the next request is taken. */
  input?: Uint8Array;
  outputLength?: number;
  native?: NativeSlot;
  /** Runs once, when the IRP is completed. */
  onComplete(irp: Irp<T>): void;
}

/**
 * One request. `T` is the type of IoStatus.Information: a byte count for IOCTLs, an object for verbs that create one
 * (IRP-based verbs RFC, 2005).
 */
export class Irp<T = number> {
  /** The kind of request and its parameters. */
  readonly stack: IrpStackLocation;
  /** The origin of the request: a program, or a driver in the kernel. */
  readonly requestorMode: RequestorMode;
  /** The request's slot in the channel, for requests of programs that the HCA may complete itself. */
  readonly native: NativeSlot | undefined;
  /** The result, final once {@link completed} is true. */
  readonly ioStatus: IoStatus<T> = {
    status: Status.PENDING,
    information: undefined,
    outputBytes: undefined,
  };
  /** Set by a create routine that returns REPARSE: the name to open instead. */
  reparseName: string | undefined = undefined;
  /** The driver's own data for the pending request. */
  driverContext: unknown = undefined;
  /** The number of the current state in {@link states}. */
  private current = allocated;
  private cancelRoutine: CancelRoutine<T> | undefined = undefined;
  private cancelFlag = false;
  private input: Uint8Array;
  /** Allocated on first use. */
  private answer: Uint8Array | undefined = undefined;
  private readonly onComplete: (irp: Irp<T>) => void;

  constructor(init: IrpInit<T>) {
    const input = init.input ?? noBytes;
    const outputLength = init.outputLength ?? 0;
    this.stack = {
      major: init.major,
      fileObject: init.fileObject,
      controlCode: init.controlCode ?? 0,
      inputLength: input.length,
      outputLength,
    };
    this.requestorMode = init.requestorMode;
    this.native = init.native;
    this.onComplete = init.onComplete;
    this.input = input;
  }

  /** The current state. */
  get state(): IrpState {
    return states[this.current]!;
  }

  /** Whether the request was completed, by its dispatch routine or later. */
  get completed(): boolean {
    const { current } = this;
    return current === completed || current === completedInline || current === completedMarked;
  }

  /** The required return value of the dispatch routine: PENDING once the IRP was marked, otherwise its final status. */
  get returnStatus(): number {
    const pends = this.current === marked || this.current === completedMarked;
    return pends ? Status.PENDING : this.ioStatus.status;
  }

  /** Whether cancellation was requested; a driver without a cancel routine may check this. */
  get cancelRequested(): boolean {
    return this.cancelFlag;
  }

  /** Maximum size of the output in bytes. */
  get outputCapacity(): number {
    return Math.min(this.stack.outputLength, maxSystemBuffer);
  }

  /**
   * The input, which can be taken once and is valid until the handler returns. A handler that completes the request
   * later decodes or copies the parts that it needs. Input and output have separate memory, so that no output can leak
   * the input or overwrite input that is still needed.
   */
  takeInput(): Uint8Array {
    const { input } = this;
    this.input = noBytes;
    return input;
  }

  /** The output: {@link outputCapacity} bytes, initially zero. */
  get output(): Uint8Array {
    this.answer ??= outputs.take(this.outputCapacity);
    return this.answer;
  }

  /** Releases the output's memory: the output has been copied, and no driver has the IRP any more. */
  endOutput(): void {
    if (this.answer === undefined) return;
    outputs.giveBack(this.answer);
    this.answer = undefined;
  }

  private step(event: number): void {
    const next = nextStates[this.current * eventNames.length + event]!;
    if (next < 0) this.refuse(event);
    this.current = next;
  }

  private refuse(event: number): never {
    const cell = irpTransitions[this.state][eventNames[event]!];
    const fault = 'fault' in cell ? cell.fault : '';
    throw new DriverFault(
      `IRP (major ${this.stack.major}, code 0x${this.stack.controlCode.toString(16)}): ${fault}`,
    );
  }

  /**
   * Runs a dispatch routine on this IRP and checks it. Returns the routine's status. Verbs (major `internal`) and their
   * completion routines run at DISPATCH_LEVEL.
   */
  dispatch(routine: (irp: Irp<T>) => number): number {
    this.step(events.dispatch);
    const isVerb = this.stack.major === IrpMajor.internal;
    const status = isVerb ? atDispatchLevel(routine, this) : routine(this);
    this.step(status === Status.PENDING ? events.returnPending : events.returnStatus);
    if (status !== Status.PENDING && status !== this.ioStatus.status) {
      throw new DriverFault(
        `IRP completed with ${statusName(this.ioStatus.status)}, but its routine returned ${statusName(status)}`,
      );
    }
    return status;
  }

  /** Marks the IRP: the dispatch routine will return PENDING (IoMarkIrpPending). Returns PENDING. */
  markPending(): number {
    this.step(events.mark);
    return Status.PENDING;
  }

  /** Sets or (undefined) clears the cancel routine. Returns the previous one, or undefined when cancelling has begun. */
  setCancelRoutine(routine: CancelRoutine<T> | undefined): CancelRoutine<T> | undefined {
    const previous = this.cancelRoutine;
    this.cancelRoutine = routine;
    return previous;
  }

  /**
   * Requests cancellation. Returns true if there was a cancel routine. A driver without one keeps the IRP and may check
   * {@link cancelRequested}.
   */
  cancel(): boolean {
    if (this.completed) return false;
    this.cancelFlag = true;
    const routine = this.setCancelRoutine(undefined);
    if (!routine) return false;
    routine(this);
    return true;
  }

  /**
   * Completes the request. Returns the status, so that a dispatch routine can return it.
   *
   * @param outputBytes - Number of valid bytes of the output, if `information` is not that number.
   */
  complete(status: number, information?: T, outputBytes?: number): number {
    if (status === Status.PENDING) throw new DriverFault('an IRP cannot be completed with PENDING');
    this.step(events.complete);
    if (this.cancelRoutine) {
      this.cancelRoutine = undefined;
      throw new DriverFault('completed while its cancel routine was still set');
    }
    this.ioStatus.status = status;
    this.ioStatus.information = information;
    this.ioStatus.outputBytes = outputBytes;
    this.onComplete(this);
    return status;
  }
}

/**
 * A cancel-safe queue of pended IRPs (as IoCsq): inserting sets the cancel routine, removing clears it.
 */
export class IrpQueue<C = undefined> {
  /** Created for the first IRP, because most queues never have one. */
  private entries: Map<Irp, C> | undefined = undefined;

  /** `onCancelled` runs before a cancelled IRP is completed with CANCELED. */
  constructor(private readonly onCancelled?: (irp: Irp, context: C) => void) {}

  /** The number of waiting requests. */
  get size(): number {
    return this.entries?.size ?? 0;
  }

  /** The IRPs in the queue at this moment. */
  private get waiting(): readonly Irp[] {
    return this.entries === undefined ? [] : [...this.entries.keys()];
  }

  /** Pends the IRP here. Returns the value for the dispatch routine to return. */
  insert(irp: Irp, context: C): number {
    irp.markPending();
    this.entries ??= new Map();
    const { entries } = this;
    entries.set(irp, context);
    irp.setCancelRoutine((cancelled) => {
      entries.delete(cancelled);
      this.onCancelled?.(cancelled, context);
      cancelled.complete(Status.CANCELED);
    });
    return Status.PENDING;
  }

  /** Removes and returns the oldest entry, or undefined. */
  removeFirst():
    | {
        /** The pending request. */
        irp: Irp;
        /** The context passed to {@link insert}. */
        context: C;
      }
    | undefined {
    for (const [irp, context] of this.entries ?? []) {
      this.remove(irp);
      return { irp, context };
    }
    return undefined;
  }

  /** The oldest entry, which stays in the queue. */
  first():
    | {
        /** The pending request. */
        irp: Irp;
        /** The context passed to {@link insert}. */
        context: C;
      }
    | undefined {
    for (const [irp, context] of this.entries ?? []) return { irp, context };
    return undefined;
  }

  /** Removes an IRP; the caller completes it. Returns false if it is not (or no longer) in the queue. */
  remove(irp: Irp): boolean {
    if (this.entries?.delete(irp) !== true) return false;
    irp.setCancelRoutine(undefined);
    return true;
  }

  /** Completes all current entries. */
  completeAll(status: number, information?: number): void {
    for (const irp of this.waiting) {
      if (this.remove(irp)) irp.complete(status, information);
    }
  }

  /** Completes the entries for which `fits` is true; returns their number. */
  completeWhere(fits: (context: C) => boolean, status: number, information?: number): number {
    const chosen = [...(this.entries ?? [])].filter(([, context]) => fits(context));
    let completed = 0;
    for (const [irp] of chosen) {
      if (!this.remove(irp)) continue;
      irp.complete(status, information);
      completed++;
    }
    return completed;
  }

  /** Cancels all current entries. */
  cancelAll(): void {
    for (const irp of this.waiting) irp.cancel();
  }
}
