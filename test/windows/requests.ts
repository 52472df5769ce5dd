/** Requests to the soft kernel, recorded on Linux and passed to Windows as JSON. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { DeviceFile } from '../../kernel-bridge/index.js';
import { type Overlapped, Status, StatusError } from '../../kernel-bridge/index.js';

/** The device file of a request. */
export type Door = 'winverbs' | 'ibat' | 'hca';

export interface RecordedRequest {
  readonly door: Door;
  readonly code: number;
  readonly overlapped: boolean;
  readonly input: Uint8Array | null;
  readonly outputLength: number;
  readonly status: number;
  readonly output: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/** A device file that records its requests and their replies. */
export class RecordingFile implements DeviceFile {
  constructor(
    private readonly file: DeviceFile,
    private readonly door: Door,
    private readonly requests: RecordedRequest[],
  ) {}

  get name(): string {
    return this.file.name;
  }

  get extended(): boolean {
    return this.file.extended;
  }

  get localOnly(): boolean {
    return this.file.localOnly;
  }

  get closed(): boolean {
    return this.file.closed;
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    const record = this.#recorder(code, false, input, outputLength);
    try {
      return record(Status.SUCCESS, this.file.ioctl(code, input, outputLength));
    } catch (error) {
      if (error instanceof StatusError) record(error.status, error.output ?? NO_BYTES);
      throw error;
    }
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    const record = this.#recorder(code, true, input, outputLength);
    return this.file
      .ioctlOverlapped(code, input, outputLength, (output) => output.slice())
      .derive(
        (output) => decode(record(Status.SUCCESS, output)),
        (error) => {
          record(error.status, error.output ?? NO_BYTES);
          throw error;
        },
      );
  }

  close(): void {
    this.file.close();
  }

  #recorder(code: number, overlapped: boolean, input: Uint8Array | null, outputLength: number) {
    const { door } = this;
    const copy = input?.slice() ?? null;
    return (status: number, output: Uint8Array): Uint8Array => {
      this.requests.push({
        door,
        code,
        overlapped,
        input: copy,
        outputLength,
        status,
        output: output.slice(),
      });
      return output;
    };
  }
}

const isBytes = (value: unknown): value is { hex: string } =>
  typeof value === 'object' && value !== null && 'hex' in value;

export function writeRequests(path: string, requests: readonly RecordedRequest[]): void {
  const text = JSON.stringify(requests, (_key, value: unknown) =>
    value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value,
  );
  writeFileSync(path, text);
}

export function readRequests(path: string): RecordedRequest[] {
  return JSON.parse(readFileSync(path, 'utf8'), (_key, value: unknown) =>
    isBytes(value) ? new Uint8Array(Buffer.from(value.hex, 'hex')) : value,
  ) as RecordedRequest[];
}
