/**
 * Events of a device while a program uses it: `device ADDRESS NETDEV RDMA-DEVICE TYPE`, as root. Prints a line of JSON: the events that the
 * program received, the statuses of its requests when the device was removed, and whether the device works after its return.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { PortState, WvEvent } from '../../../kernel-bridge/index.js';
import {
  gidOfAddress,
  type IWVDevice,
  type IWVProvider,
  type Overlapped,
  openProvider,
  StatusError,
  WvSend,
} from '../../../winverbs/index.js';
import { connect, openListener, openSide, take } from '../../helpers/loopback.js';
import { outcomeName } from '../../helpers/outcome.js';
import { system } from './lossy-link.js';

const [address = '', link = '', name = '', type = ''] = process.argv.slice(2);
const EXTRA = address.replace(/\d+$/, '77');

/** Helps to find out why the program hangs. */
const step = (text: string): void => console.log(`${(performance.now() / 1000).toFixed(1)} s: ${text}`);

/** Waits until the device has reported these events, in one result or several. */
async function until(device: IWVDevice, wanted: number, pending?: Overlapped<number>): Promise<number> {
  let flags = pending ? await pending : 0;
  while ((flags & wanted) !== wanted) flags |= await device.notify(1);
  return flags;
}

const hasGid = (device: IWVDevice, ip: string): boolean => {
  try {
    device.findGid(1, gidOfAddress(ip));
    return true;
  } catch (error) {
    if (error instanceof StatusError) return false;
    throw error;
  }
};

/** Addresses are added and removed, and the link goes down and up. */
async function portEvents(device: IWVDevice): Promise<object> {
  const reported: Record<string, unknown> = {};
  const added = device.notify(1);
  system(`ip addr add ${EXTRA}/24 dev ${link}`);
  await until(device, WvEvent.ADDRESS, added);
  step('address added');
  reported.added = hasGid(device, EXTRA);
  const removed = device.notify(1);
  system(`ip addr del ${EXTRA}/24 dev ${link}`);
  await until(device, WvEvent.ADDRESS, removed);
  step('address removed');
  reported.removed = hasGid(device, EXTRA);
  const down = device.notify(1);
  system(`ip link set ${link} down`);
  await until(device, WvEvent.STATE, down);
  step('link down');
  reported.down = device.queryPort(1).state === PortState.DOWN;
  const up = device.notify(1);
  system(`ip link set ${link} up`);
  await until(device, WvEvent.STATE, up);
  while (device.queryPort(1).state !== PortState.ACTIVE) await device.notify(1);
  step('link up');
  reported.up = true;
  return reported;
}

/** Messages over a new connection; throws if one does not arrive. */
async function works(provider: IWVProvider): Promise<boolean> {
  const [a, b] = [openSide(provider, {}, 8192, address), openSide(provider, {}, 8192, address)];
  step('sides are there');
  await connect(provider, a, b, address);
  step('connected');
  b.qp.postReceive('r', b.sge(0, 8));
  a.memory.write('it works');
  a.qp.send('s', a.sge(0, 8), WvSend.SIGNALED);
  await take(b.cq, 1);
  await take(a.cq, 1);
  step('a message has come');
  const came = b.memory.toString('latin1', 0, 8) === 'it works';
  await a.ep.disconnect();
  for (const side of [a, b]) side.release();
  return came;
}

/** The OS removes the device while requests of every kind are pending. */
async function removal(provider: IWVProvider): Promise<object> {
  const [a, b] = [openSide(provider, {}, 8192, address), openSide(provider, {}, 8192, address)];
  await connect(provider, a, b, address);
  const { listener } = openListener(provider, address);
  const accepting = openSide(provider, {}, 8192, address);
  const window = a.pd.allocateMemoryWindow();
  for (const side of [a, b]) side.qp.postReceive('waits', side.sge(0, 8));
  const waiting = {
    cqAny: a.cq.notify('any'),
    cqSolicited: b.cq.notify('solicited'),
    cqError: b.cq.notify('errors'),
    getRequest: listener.getRequest(accepting.ep),
    notifyDisconnect: a.ep.notifyDisconnect(),
    deviceNotify: b.device.notify(1),
  };
  const ends = Object.entries(waiting).map(
    async ([kind, request]) => [kind, await outcomeName(request)] as const,
  );
  // The command ends when the program has released the device.
  const deletion = once(spawn('rdma', ['link', 'del', name], { stdio: 'ignore' }), 'exit');
  const ended = Object.fromEntries(await Promise.all(ends));
  step('all requests have ended');
  const gone = await outcomeName((async () => provider.translateAddress(address))());
  await deletion;
  step('the device has gone');
  window.release();
  for (const side of [a, b, accepting]) side.release();
  listener.release();
  return { ended, gone };
}

/** The device is added again while the program runs. */
async function again(provider: IWVProvider): Promise<boolean> {
  system(`rdma link add ${name} type ${type} netdev ${link}`);
  const translated = async (): Promise<unknown> => provider.translateAddress(address);
  while ((await outcomeName(translated())) !== 'SUCCESS') await setTimeout(20);
  step('the device is back');
  return works(provider);
}

const provider = openProvider();
const { deviceGuid } = provider.translateAddress(address);
const device = provider.openDevice(deviceGuid);
const reported = {
  before: await works(provider),
  events: await portEvents(device),
  ...(await removal(provider)),
  again: await again(provider),
};
device.release();
provider.release();
console.log(JSON.stringify(reported));
