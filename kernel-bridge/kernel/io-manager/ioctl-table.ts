/** The requests that a device serves: unknown codes and buffers that are too short are refused here. */
import type { NamedIoctlRow } from '../../ioctl/codes.js';
import { Status } from '../../ioctl/status.js';
import type { Irp } from './irp.js';

/** A row, and the handler of its requests. */
export interface Served<H> {
  readonly row: NamedIoctlRow;
  readonly handler: H;
}

/** Dispatches a device's IOCTLs by code: the rows, each with its handler. */
export class IoctlTable<H> {
  private readonly served: ReadonlyMap<number, { row: NamedIoctlRow; handler: H | undefined }>;

  /** `handlers` by the names of the rows; a row without one is known, but this device does not serve it. */
  constructor(rows: readonly NamedIoctlRow[], handlers: Readonly<Record<string, H>>) {
    this.served = new Map(rows.map((row) => [row.code, { row, handler: handlers[row.name] }]));
  }

  /**
   * The row and handler of a request that has the fixed parts of its structures, or the status to refuse it with:
   * PROCEDURE_NOT_FOUND (an unknown code), INVALID_DEVICE_REQUEST (no handler), BUFFER_TOO_SMALL.
   */
  find({ stack: { controlCode, inputLength, outputLength } }: Irp): Served<H> | number {
    const served = this.served.get(controlCode);
    if (!served) return Status.PROCEDURE_NOT_FOUND;
    if (served.handler === undefined) return Status.INVALID_DEVICE_REQUEST;
    const { input, output } = served.row;
    const fits = inputLength >= (input?.size ?? 0) && outputLength >= (output?.size ?? 0);
    return fits ? (served as Served<H>) : Status.BUFFER_TOO_SMALL;
  }
}
