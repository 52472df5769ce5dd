/** A process of another user that owns names and ports which processes of this user need. Only root can start one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';

const NOBODY = '65534';
const AS_NOBODY = ['--reuid', NOBODY, '--regid', NOBODY, '--clear-groups'];

/** Programs that other users can also run. */
const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };

/** Python, because Node.js cannot create such sockets. The arguments are names. It prints a line when it owns them all. */
const HOLDER = `
import socket, sys
held = []
for name in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind('\\0' + name)
    s.listen(8)
    held.append(s)
for family, everywhere in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((everywhere, 4791))
    held.append(s)
print('held', flush=True)
sys.stdin.read()
`;

/** Connects to each name, sends it a message, and prints a line for the result. Arguments: the message in hexadecimal, names. */
const ASKER = `
import socket, sys
for name in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(60)
    try:
        s.connect('\\0' + name)
        s.send(bytes.fromhex(sys.argv[1]))
        answer = s.recv(65536)
        print('bytes:' + str(len(answer)) if answer else 'ended')
    except OSError as error:
        print(type(error).__name__)
`;

/** The results of sending a message to these names: `bytes:` and their number, `ended`, or the name of Python's error. */
export function askBySocket(
  who: 'own user' | 'other user',
  message: Uint8Array,
  names: readonly string[],
): string[] {
  const python = ['python3', '-c', ASKER, Buffer.from(message).toString('hex'), ...names];
  const [program, ...args] = who === 'own user' ? python : ['setpriv', ...AS_NOBODY, ...python];
  const { stdout, stderr } = spawnSync(program!, args, { cwd: '/', env, encoding: 'utf8' });
  if (stderr !== '') throw new Error(stderr);
  return stdout.trim().split('\n');
}

/** Why processes of another user are not possible here; undefined if they are. */
export function strangerProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can start a process of another user';
  const { status } = spawnSync('setpriv', [...AS_NOBODY, 'python3', '-c', 'pass'], { cwd: '/', env });
  return status === 0
    ? undefined
    : 'setpriv (util-linux) cannot start python3 as another user; install both, or leave the sandbox';
}

export class Stranger {
  private constructor(private readonly child: ChildProcess) {}

  /** Also binds UDP 4791. */
  static async holding(names: readonly string[]): Promise<Stranger> {
    const child = spawn('setpriv', [...AS_NOBODY, 'python3', '-c', HOLDER, ...names], {
      cwd: '/',
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === 'held') return new Stranger(child);
    }
    throw new Error('The other user could not bind the names.');
  }

  get pid(): number {
    return this.child.pid!;
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.child.on('close', () => resolve());
      this.child.stdin!.end();
    });
  }
}
