/** Requests recorded at the soft kernel's door, as JSON between Linux and Windows. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { DeviceFile } from '../../kernel-bridge/index.js';
import { type Overlapped, Status, StatusError } from '../../kernel-bridge/index.js';

/** Which device file it was. */
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

/** A device file that notes what goes through it. */
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
    const note = this.#notes(code, false, input, outputLength);
    try {
      return note(Status.SUCCESS, this.file.ioctl(code, input, outputLength));
    } catch (error) {
      if (error instanceof StatusError) note(error.status, error.output ?? NO_BYTES);
      throw error;
    }
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    const note = this.#notes(code, true, input, outputLength);
    return this.file
      .ioctlOverlapped(code, input, outputLength, (output) => output.slice())
      .derive(
        (output) => decode(note(Status.SUCCESS, output)),
        (error) => {
          note(error.status, error.output ?? NO_BYTES);
          throw error;
        },
      );
  }

  close(): void {
    this.file.close();
  }

  #notes(code: number, overlapped: boolean, input: Uint8Array | null, outputLength: number) {
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
