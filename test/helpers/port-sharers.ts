/** The processes that have sockets on UDP 4791 in this network namespace. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const PORT = ':12B7';

/** Inodes of sockets on the port that are not connected to a single peer. */
function inodes(): Set<string> {
  const found = new Set<string>();
  for (const table of ['/proc/self/net/udp', '/proc/self/net/udp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
      if (local.endsWith(PORT) && remote.endsWith(':0000')) found.add(inode);
    }
  }
  return found;
}

/** Process ids without duplicates, in ascending order. */
export function portSharers(): number[] {
  const wanted = inodes();
  const owns = (pid: string): boolean => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => {
        const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
        return inode !== undefined && wanted.has(inode);
      });
    } catch {
      return false; // the process has exited
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && owns(name))
    .map(Number)
    .sort((a, b) => a - b);
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // the descriptor was closed
  }
}
