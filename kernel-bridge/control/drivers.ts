import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Overlapped } from '../door/overlapped.js';
import { DriversCode } from '../ioctl/codes.js';
import { CONTROL_DEVICE } from '../ioctl/control.js';
import { shown } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { KernelOptionsInput } from '../option-checks/option-schemas.js';
import type { OpenFile } from './control-requests.js';

/** Maximum output size in bytes: names of devices, or a reason. */
const answerBytes = 65_536;
const defaultTimeoutMs = 5_000;
const longestTimeoutMs = 600_000;

/** Options of {@link loadDriver}. */
export interface LoadDriverOptions {
  /** The driver's name: 1 to 64 letters, digits, `_`, `-` and `.`. Default: the file name without its extension. */
  readonly name?: string;
  /** Any JSON value, passed to the driver; it serves as its registry. */
  readonly parameters?: unknown;
  /** Maximum time for evaluating the driver's code, and again for its entry routine; 1 to 600 000 ms, default 5 000. */
  readonly timeoutMs?: number;
  /** Options of the kernel, if this call starts it. */
  readonly kernel?: KernelOptionsInput;
}

/** A driver in the soft kernel. */
export interface LoadedDriver {
  /** `\Driver\` followed by its name. */
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
    return invalid(`${JSON.stringify(file)} is not a valid URL; pass the path or the file: URL of a driver.`);
  }
}

/** The file's URL; a path is relative to the working directory. */
function fileUrl(file: string | URL): string {
  if (typeof file !== 'string' && !(file instanceof URL))
    invalid(`\`file\` must be a path or a URL; got ${shown(file)}.`);
  const url = urlOf(file);
  if (url.protocol !== 'file:') invalid(`\`file\` must be a path or a file: URL; got ${url.href}.`);
  return url.href;
}

function checkedName(name: unknown): string {
  if (typeof name === 'string' && /^[\w.-]{1,64}$/.test(name)) return name;
  return invalid(`\`name\` must be 1 to 64 letters, digits, '_', '-' and '.'; got ${JSON.stringify(name)}.`);
}

function baseName(url: string): string {
  // Characters that the URL escapes are not valid in a name.
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
    return invalid(`\`parameters\` must be a JSON value: ${reason}.`);
  }
}

/** A request to the driver host; its file is closed with it. */
function ask<T>(open: OpenFile, code: number, request: object): Overlapped<T> {
  const input = inputOf(request);
  const file = open(CONTROL_DEVICE);
  const decode = (output: Uint8Array): T => {
    const reply = JSON.parse(new TextDecoder().decode(output)) as
      | { result: T }
      | { status: number; reason: string };
    if ('result' in reply) return reply.result;
    throw new StatusError(reply.status, reply.reason);
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

/** Requests a kernel, whose device files `open` opens, to load a driver. */
export function requestLoad(
  open: OpenFile,
  file: string | URL,
  options: LoadDriverOptions,
): Overlapped<LoadedDriver> {
  const url = fileUrl(file);
  if (typeof options !== 'object' || options === null)
    invalid(`The options of loadDriver must be an object; got ${shown(options)}.`);
  const { parameters = null, timeoutMs = defaultTimeoutMs } = options;
  const name = checkedName(options.name ?? baseName(url));
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestTimeoutMs)
    invalid(`\`timeoutMs\` must be an integer from 1 to ${longestTimeoutMs}; got ${shown(timeoutMs)}.`);
  return ask<LoadedDriver>(open, DriversCode.LOAD, { url, name, parameters, timeoutMs });
}

/** Requests a kernel to unload a driver. */
export function requestUnload(open: OpenFile, name: string): Overlapped<void> {
  const short = typeof name === 'string' ? name.replace(/^\\Driver\\/i, '') : name;
  return ask<unknown>(open, DriversCode.UNLOAD, { name: checkedName(short) }).map(() => undefined);
}
