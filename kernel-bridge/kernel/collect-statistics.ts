/** Collects the statistics of a soft kernel for other processes of its user. */

import { QpState, QpType, WvAccess } from '../ioctl/constants.js';
import { guidText } from '../ioctl/hca-file.js';
import { addressOfGid } from '../ioctl/sockaddr.js';
import {
  type ConnectionStatistics,
  type KernelStatistics,
  type MemoryStatistics,
  type QueuePairStatistics,
  STATISTICS_FORM,
  STATISTICS_MOST,
} from '../ioctl/statistics-form.js';
import { gidBytes } from '../schema/generated/attributes.js';
import { memoryAt, memoryNumbers, queuePairAt, queuePairNumbers } from '../schema/generated/statistics.js';
import type { CounterGroups } from './control-driver.js';
import { Endpoint } from './filter/connect-endpoint.js';
import type { EndpointAddress } from './filter/endpoint-types.js';
import type { AnyEndpoint } from './filter/file-objects.js';
import type { HcaBackend } from './hca-driver/backend.js';
import type { KnownPort } from './hca-driver/hca-ports.js';

/** The sources of a kernel's statistics. */
export interface StatisticsSource {
  readonly hcas: readonly HcaBackend[];
  readonly ports: readonly KnownPort[];
  readonly endpoints: readonly AnyEndpoint[];
  readonly counters: CounterGroups;
}

const noAddress = new Uint8Array(gidBytes);

const nameOf = (table: Readonly<Record<string, number>>, value: number): string =>
  Object.entries(table).find(([, one]) => one === value)?.[0] ?? String(value);

/** Names of the rights whose bits are all set; `ALL` is omitted, since it consists of the others. */
function accessNames(access: number): string[] {
  const { ALL: _, ...rights } = WvAccess;
  return Object.entries(rights).flatMap(([name, bits]) => ((access & bits) >>> 0 === bits ? [name] : []));
}

function addressText(gid: Uint8Array): string {
  return gid.every((byte, place) => byte === noAddress[place]) ? '' : addressOfGid(gid);
}

function endpointText(address: EndpointAddress | undefined): string {
  if (address === undefined) return '';
  const text = addressOfGid(address.gid, address.scopeId);
  return text.includes(':') ? `[${text}]:${address.port}` : `${text}:${address.port}`;
}

/** A queue pair; `gids` are its address and the peer's. */
function queuePairOf(
  { type, state, localLink, ...numbers }: ReturnType<typeof queuePairAt>,
  gids: Uint8Array,
): QueuePairStatistics {
  const remote = addressText(gids.subarray(gidBytes));
  return {
    ...numbers,
    type: nameOf(QpType, type),
    state: nameOf(QpState, state),
    local: addressText(gids.subarray(0, gidBytes)),
    remote,
    link: localLink ? 'local' : remote === '' ? 'none' : 'wire',
  };
}

function memoryOf({ window, fast, access, ...rest }: ReturnType<typeof memoryAt>): MemoryStatistics {
  return { ...rest, kind: window ? 'window' : fast ? 'fast' : 'region', access: accessNames(access) };
}

function connectionOf(endpoint: AnyEndpoint): ConnectionStatistics {
  const connects = endpoint instanceof Endpoint;
  return {
    type: connects ? 'connect' : 'datagram',
    state: endpoint.state,
    local: endpointText(endpoint.local),
    remote: endpointText(endpoint.peer),
    qpn: connects ? (endpoint.queuePair?.qp.qpn ?? 0) : 0,
  };
}

/** Collects the statistics of a kernel. */
export function kernelStatistics({ hcas, ports, endpoints, counters }: StatisticsSource): KernelStatistics {
  const queuePairs: QueuePairStatistics[] = [];
  const memory: MemoryStatistics[] = [];
  let sharedReceived = 0;
  for (const { native } of hcas) {
    const collected = native.statistics?.(STATISTICS_MOST);
    if (collected === undefined) continue;
    const { queuePairs: ofQueuePairs, memory: ofMemory, addresses } = collected;
    for (let at = 0; at < ofQueuePairs.length; at += queuePairNumbers) {
      const gids = (at / queuePairNumbers) * 2 * gidBytes;
      queuePairs.push(
        queuePairOf(queuePairAt(ofQueuePairs, at), addresses.subarray(gids, gids + 2 * gidBytes)),
      );
    }
    for (let at = 0; at < ofMemory.length; at += memoryNumbers) memory.push(memoryOf(memoryAt(ofMemory, at)));
    sharedReceived += collected.sharedReceived;
  }
  const { qp = 0, mr = 0, mw = 0 } = counters.objects ?? {};
  return {
    form: STATISTICS_FORM,
    pid: process.pid,
    node: process.versions.node,
    uptime: Math.round(process.uptime()),
    at: performance.now(),
    devices: ports.map(({ interfaceName, guid, hca }) => ({
      name: interfaceName,
      guid: guidText(guid),
      hca: hca.identity?.device ?? 'software',
    })),
    wire: hcas.find(({ native }) => native.wire !== undefined)?.native.wire ?? 'none',
    counters,
    sharedReceived,
    queuePairs,
    connections: endpoints.slice(0, STATISTICS_MOST).map(connectionOf),
    memory,
    omitted: {
      queuePairs: Math.max(qp - queuePairs.length, 0),
      connections: Math.max(endpoints.length - STATISTICS_MOST, 0),
      memory: Math.max(mr + mw - memory.length, 0),
    },
  };
}
