/** Controls the stand-in driver (driver/standin.h). */
import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import type { DeviceFile } from '../../kernel-bridge/index.js';
import { openDeviceFile, Status, StatusError } from '../../kernel-bridge/index.js';
import { outcome } from '../helpers/outcome.js';
import { HANG_MS, within } from '../helpers/within.js';

export const WINVERBS = '\\\\.\\WinVerbs';
export const IBAT = '\\\\.\\ibat';
/** The CA GUID of the only device. */
export const GUID = 0x0002c903000f1234n;

const code = (i: number): number => ((0x22 << 16) | ((0xa00 + i) << 2)) >>> 0;
export const TestCode = {
  ECHO: code(0),
  PEND: code(1),
  COMPLETE: code(2),
  FAIL: code(3),
  STATS: code(4),
  SCRIPT: code(5),
  LOG: code(6),
  STUBBORN: code(7),
  FAULT: code(8),
} as const;

export function u32(...values: number[]): Uint8Array {
  return new Uint8Array(new Uint32Array(values).buffer);
}

export function words(bytes: Uint8Array): number[] {
  return [...new Uint32Array(bytes.slice().buffer)];
}

/** A request as received by the driver. */
export interface LoggedRequest {
  readonly code: number;
  readonly outputLength: number;
  readonly input: Uint8Array;
}

export class Standin {
  readonly file: DeviceFile = openDeviceFile(WINVERBS);

  stats() {
    const [waiting, cancelled, opens, closes, objects, faults, scripted] = words(
      this.file.ioctl(TestCode.STATS, null, 28),
    ) as [number, number, number, number, number, number, number];
    return { waiting, cancelled, opens, closes, objects, faults, scripted };
  }

  /** Returns the name of the first wrong field since the last call; empty if there was none. */
  fault(): string {
    return Buffer.from(this.file.ioctl(TestCode.FAULT, null, 256)).toString();
  }

  /** Completes the `count` oldest pending requests. Returns their number. */
  complete(count: number, status: number = Status.SUCCESS, bytes = 0): number {
    return words(this.file.ioctl(TestCode.COMPLETE, u32(count, status, bytes), 4))[0]!;
  }

  /** Sets the reply to the next request with this code. With `wait`, the request pends first. */
  script(of: number, status: number, output: Uint8Array, wait = false): void {
    this.file.ioctl(
      TestCode.SCRIPT,
      Buffer.concat([u32(of, status, wait ? 1 : 0, output.length), output]),
      0,
    );
  }

  stubborn(on: boolean): void {
    this.file.ioctl(TestCode.STUBBORN, u32(on ? 1 : 0), 0);
  }

  /** Returns the requests since the last call. */
  log(): LoggedRequest[] {
    const requests: LoggedRequest[] = [];
    for (;;) {
      const record = this.#record();
      if (record === undefined) return requests;
      const [of, , outputLength] = words(record.slice(0, 16));
      requests.push({ code: of!, outputLength: outputLength!, input: record.slice(16) });
    }
  }

  #record(): Uint8Array | undefined {
    try {
      return this.file.ioctl(TestCode.LOG, null, 1 << 20);
    } catch (error) {
      if (error instanceof StatusError && error.status === Status.NO_MORE_ENTRIES) return undefined;
      throw error;
    }
  }
}

/** Returns the status with which a call or its promise ends. */
export async function statusOf(run: () => unknown): Promise<number> {
  return outcome(Promise.resolve().then(run));
}

/** Waits until a condition holds, at most for the common time limit. */
export async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + HANG_MS; !holds(); ) {
    if (Date.now() > end) throw new Error('The condition did not become true.');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Rejects if a promise does not settle within the common time limit. */
export function inTime<T>(what: string, end: PromiseLike<T>): Promise<T> {
  return within(end, HANG_MS, () => new Error(`${what} has not ended.`));
}

/** A test after which the driver must not have found a wrong field, and must not have objects, requests or files of the test. */
export function clean(suite: Test, standin: Standin, name: string, run: () => unknown): void {
  suite(name, async () => {
    const left = () => {
      const { objects, waiting, opens, closes } = standin.stats();
      return { objects, waiting, files: opens - closes };
    };
    const before = left();
    await inTime(name, Promise.resolve(run()));
    assert.is(standin.fault(), '');
    await until(() => JSON.stringify(left()) === JSON.stringify(before)).catch(() =>
      assert.equal(left(), before),
    );
  });
}
