/**
 * Runs in a separate network namespace: creates interfaces, routes and rules, and prints, as one line of JSON, the local address of paths
 * in each of several configurations.
 */
import { spawnSync } from 'node:child_process';
import { addressOfGid, StatusError, statusName } from '../../kernel-bridge/index.js';
import { openProvider } from '../../winverbs/index.js';

function ip(line: string): void {
  const { status, stderr, error } = spawnSync('ip', line.split(' '));
  if (error) throw error;
  if (status !== 0) throw new Error(`ip ${line}: ${String(stderr).trim()}`);
}

/** A cable with both ends in this namespace, so that it has a carrier. */
function cable(name: string, addresses: readonly string[], mtu = 1500): void {
  ip(`link add ${name} mtu ${mtu} type veth peer name other-${name}`);
  for (const address of addresses)
    ip(`address add ${address} dev ${name}${address.includes(':') ? ' nodad' : ''}`);
  ip(`link set other-${name} up`);
  ip(`link set ${name} up`);
}

cable('v1', ['10.99.0.1/24', 'fd99::1/64']);
cable('v2', ['10.98.0.1/24', '10.98.0.7/24', 'fd98::1/64']);

const provider = openProvider();
const device = provider.openDevice(provider.translateAddress('10.98.0.1').deviceGuid);

/** The local address of the path to an address, or the status of the query. */
function from(remote: string, local?: string): string {
  try {
    const { sourceGid } = provider.resolvePath(remote, local).addressVector;
    return typeof sourceGid === 'string' ? sourceGid : addressOfGid(sourceGid);
  } catch (error) {
    if (error instanceof StatusError) return statusName(error.status);
    throw error;
  }
}

/** Repeats the query until the result changes, because changes arrive as events. Returns the new result, or the old one after a while. */
async function next(remote: string, before: string): Promise<string> {
  for (const end = performance.now() + 900; performance.now() < end; ) {
    const now = from(remote);
    if (now !== before) return now;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return before;
}

const answers = new Map<string, string>();
answers.set('no default route', from('203.0.113.5'));
answers.set('no default route, IPv6', from('2001:db8::5'));
answers.set('no default route, from an address', from('203.0.113.5', '10.99.0.1'));
answers.set('on the link', from('10.99.0.9'));
answers.set('broadcast', from('10.99.0.255'));

ip('route add 192.168.50.0/24 via 10.98.0.2 dev v2');
ip('route add fd50::/64 via fd98::2 dev v2');
answers.set('static', from('192.168.50.1'));
answers.set('static, IPv6', from('fd50::1'));

ip('route add 192.168.51.0/24 via 10.98.0.2 dev v2 src 10.98.0.7');
answers.set('static with a source', from('192.168.51.1'));
ip('route add blackhole 192.168.52.0/24');
ip('route add 192.168.0.0/16 via 10.99.0.2 dev v1');
answers.set('wider', from('192.168.53.1'));
answers.set('blackhole', from('192.168.52.1'));

ip('rule add to 192.168.54.0/24 lookup 77');
ip('route add default via 10.98.0.2 dev v2 table 77');
answers.set('rule by destination', from('192.168.54.1'));
ip('rule add from 10.98.0.7 lookup 78');
ip('route add unreachable default table 78');
answers.set('rule by source', from('192.168.50.1', '10.98.0.7'));

ip('route add default via 10.99.0.2 dev v1');
ip('-6 route add default via fd99::2 dev v1');
answers.set('default', await next('203.0.113.5', answers.get('no default route')!));
answers.set('default, IPv6', await next('2001:db8::5', answers.get('no default route, IPv6')!));
ip('route change default via 10.98.0.2 dev v2');
answers.set('default changed', await next('203.0.113.5', answers.get('default')!));
ip('rule add to 203.0.113.5 lookup 79');
ip('route add default via 10.99.0.2 dev v1 table 79');
answers.set('rule added', await next('203.0.113.5', answers.get('default changed')!));

device.release();
provider.release();
process.stdout.write(`${JSON.stringify(Object.fromEntries(answers))}\n`);
