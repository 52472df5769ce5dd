/**
 * Messages between the block device and its clients. A client sends a request with the address of its buffer. The device writes the blocks
 * to that buffer, or reads them from it, and sends a reply with the same tag. Integers are little-endian.
 */

/** Maximum outstanding requests of a client. */
export const WINDOW = 16;
/** Code of the device's only IOCTL. Its output has 4 bytes each for port, block size, number of blocks, and requests served so far. */
export const QUERY = 0x0022_2000;
export const QUERY_BYTES = 16;
/** The file that a program opens to query the device. */
export const DEVICE_FILE = '\\\\.\\BlockDevice';

export const Operation = { READ: 1, WRITE: 2 } as const;
export const Result = { DONE: 0, OUT_OF_RANGE: 1, UNKNOWN: 2 } as const;

export const REQUEST_BYTES = 32;
export const ANSWER_BYTES = 8;

export interface BlockRequest {
  readonly operation: number;
  readonly tag: number;
  readonly block: number;
  readonly count: number;
  /** The client's memory. */
  readonly rkey: number;
  readonly address: bigint;
}

export function writeRequest(view: DataView, offset: number, request: BlockRequest): void {
  view.setUint32(offset, request.operation, true);
  view.setUint32(offset + 4, request.tag, true);
  view.setUint32(offset + 8, request.block, true);
  view.setUint32(offset + 12, request.count, true);
  view.setBigUint64(offset + 16, request.address, true);
  view.setUint32(offset + 24, request.rkey, true);
}

/** Reads a request. The address is split into two halves so that the device handles requests without bigints. */
export function readRequest(view: DataView, offset: number) {
  return {
    operation: view.getUint32(offset, true),
    tag: view.getUint32(offset + 4, true),
    block: view.getUint32(offset + 8, true),
    count: view.getUint32(offset + 12, true),
    addressLow: view.getUint32(offset + 16, true),
    addressHigh: view.getUint32(offset + 20, true),
    rkey: view.getUint32(offset + 24, true),
  };
}
