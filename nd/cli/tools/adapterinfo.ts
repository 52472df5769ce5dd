/** `nd adapterinfo`: an adapter's limits and flags, from Query. */
import { Command } from 'commander';
import * as z from 'zod';
import { readInterfaces } from '../../../kernel-bridge/index.js';
import {
  Nd2AdapterFlag,
  type Nd2AdapterInfo,
  type NdAdapterInfo,
  type NdProviderEntry,
  ndOpenAdapter,
  ndOpenV1Adapter,
  ndProviderOf,
  type SocketAddress,
} from '../../index.js';
import { hcaText } from '../verbs-info.js';
import { commonOptions, tool } from './tool.js';

function query(
  spi: 'v1' | 'v2',
  address: SocketAddress,
): { info: NdAdapterInfo | Nd2AdapterInfo; provider?: NdProviderEntry | undefined } {
  if (spi === 'v1') {
    using adapter = ndOpenV1Adapter(address);
    return { info: adapter.query() };
  }
  using adapter = ndOpenAdapter(address);
  return { info: adapter.query(), provider: ndProviderOf(adapter) };
}

const ids: ReadonlySet<string> = new Set(['vendorId', 'deviceId', 'adapterId']);

function hex(value: number | bigint): string {
  return value.toString(16).toUpperCase().padStart(8, '0');
}

/** Returns a line for each value, with its name in the SPI, and one for each flag. */
function* lines(info: NdAdapterInfo | Nd2AdapterInfo): Generator<string> {
  for (const [key, value] of Object.entries(info) as [string, number | bigint][]) {
    const name = key[0]!.toUpperCase() + key.slice(1);
    if (key !== 'adapterFlags') yield `${name}: ${ids.has(key) ? `0x${hex(value)}` : value}`;
    else {
      yield `${name}:`;
      let unknown = value as number;
      for (const [flag, bit] of Object.entries(Nd2AdapterFlag)) {
        if ((unknown & bit) === 0) continue;
        unknown &= ~bit;
        yield `\t\tND_ADAPTER_FLAG_${flag}`;
      }
      if (unknown !== 0) yield `\t\t${hex(unknown >>> 0)}`;
    }
  }
}

export const adapterinfoCommand = tool(
  new Command('adapterinfo').description('show the limits and features of an adapter'),
  z.object(commonOptions),
  { banner: false },
  async (one, address, { spi }) => {
    const { info, provider } = query(spi, address);
    for (const line of lines(info)) one.line(line);
    if (provider !== undefined) {
      const { library, version, path } = provider;
      one.line(`Provider: ${library}, version ${version || 'unknown'}, at ${path}`);
      one.result(info);
      return;
    }
    const at = 'adapterId' in info ? readInterfaces().find(({ guid }) => guid === info.adapterId) : undefined;
    if (at?.hca) one.line(`Hca: ${hcaText(at)}, firmware ${at.hca.firmware}, at ${at.name}`);
    one.result(info);
  },
);
