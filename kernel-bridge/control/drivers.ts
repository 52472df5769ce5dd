import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Overlapped } from '../door/overlapped.js';
import { DriversCode } from '../ioctl/codes.js';
import { CONTROL_DEVICE } from '../ioctl/control.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { KernelOptionsInput } from '../option-checks/option-schemas.js';
import type { OpenFile } from './control-requests.js';

/** Longest answer in bytes: names of devices, or a reason. */
const answerBytes = 65_536;
const defaultTimeoutMs = 5_000;
const longestTimeoutMs = 600_000;

/** Options of {@link loadDriver}. */
export interface LoadDriverOptions {
  /** The driver's name: 1 to 64 letters, digits, `_`, `-` and `.`. Default: that of the file without its ending. */
  readonly name?: string;
  /** Any JSON value, for the driver: its registry, so to speak. */
  readonly parameters?: unknown;
  /** Longest time for its code to be evaluated, and for its entry routine after that; 1 to 600 000 ms, default 5 000. */
  readonly timeoutMs?: number;
  /** Options of the kernel, if this starts it. */
  readonly kernel?: KernelOptionsInput;
}

/** A driver in the soft kernel. */
export interface LoadedDriver {
  /** `\Driver\` and its name. */
  readonly name: string;
  /** Names of its devices, `\Device\…`. */
  readonly devices: readonly string[];
}

function invalid(text: string): never {
  throw new StatusError(Status.INVALID_PARAMETER, text);
}

function urlOf(file: string | URL): URL {
  const isUrl = file instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(file);
  try {
    return isUrl ? new URL(file) : pathToFileURL(resolve(file));
  } catch {
    return invalid(`${JSON.stringify(file)} is no URL; a driver is the path or the file: URL of a file.`);
  }
}

/** The file's URL; a path counts from the working directory. */
function fileUrl(file: string | URL): string {
  if (typeof file !== 'string' && !(file instanceof URL))
    invalid(`A driver is a path or a URL, not ${typeof file}.`);
  const url = urlOf(file);
  if (url.protocol !== 'file:') invalid(`A driver is a file; ${url.href} has the protocol ${url.protocol}.`);
  return url.href;
}

function checkedName(name: unknown): string {
  if (typeof name === 'string' && /^[\w.-]{1,64}$/.test(name)) return name;
  return invalid(
    `A driver's name has 1 to 64 letters, digits, '_', '-' and '.'; this one is ${JSON.stringify(name)}.`,
  );
}

function baseName(url: string): string {
  // What is escaped there is no character of a name.
  return url
    .slice(url.lastIndexOf('/') + 1)
    .replace(/%[0-9a-f]{2}/gi, '_')
    .replace(/\.[cm]?[jt]s$/, '')
    .replace(/[^\w.-]/g, '_')
    .slice(0, 64);
}

function inputOf(request: object): Uint8Array {
  try {
    return new TextEncoder().encode(JSON.stringify(request));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return invalid(`A driver's parameters are a JSON value; these are not: ${reason}.`);
  }
}

/** A request to the host of drivers; its file closes with it. */
function ask<T>(open: OpenFile, code: number, request: object): Overlapped<T> {
  const input = inputOf(request);
  const file = open(CONTROL_DEVICE);
  const decode = (output: Uint8Array): T => {
    const told = JSON.parse(new TextDecoder().decode(output)) as
      | { result: T }
      | { status: number; reason: string };
    if ('result' in told) return told.result;
    throw new StatusError(told.status, told.reason);
  };
  return file.ioctlOverlapped(code, input, answerBytes, decode).derive(
    (result) => {
      file.close();
      return result;
    },
    (error) => {
      file.close();
      throw error;
    },
  );
}

/** Asks a kernel, whose device files `open` opens, to load a driver. */
export function requestLoad(
  open: OpenFile,
  file: string | URL,
  options: LoadDriverOptions,
): Overlapped<LoadedDriver> {
  const url = fileUrl(file);
  if (typeof options !== 'object' || options === null)
    invalid(`The options of loadDriver are an object, not ${options === null ? 'null' : typeof options}.`);
  const { parameters = null, timeoutMs = defaultTimeoutMs } = options;
  const name = checkedName(options.name ?? baseName(url));
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestTimeoutMs)
    invalid(`timeoutMs is ${timeoutMs}; it is a whole number of milliseconds from 1 to ${longestTimeoutMs}.`);
  return ask<LoadedDriver>(open, DriversCode.LOAD, { url, name, parameters, timeoutMs });
}

/** Asks a kernel to unload a driver. */
export function requestUnload(open: OpenFile, name: string): Overlapped<void> {
  const short = typeof name === 'string' ? name.replace(/^\\Driver\\/i, '') : name;
  return ask<unknown>(open, DriversCode.UNLOAD, { name: checkedName(short) }).map(() => undefined);
}
