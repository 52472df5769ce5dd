/** Cases of NVMe over RDMA: nd/cli/nvme against the kernel's target and initiator, with a file system and fio on it. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FAMILIES, GUEST, HERE, type InteropCase } from './case.js';
import type { Program } from './process.js';
import { address, type Rig } from './rig.js';

const NQN = 'nqn.2026-11.io.example:disk';
const PORT = 4420;
/** A host's name and identifier, because the guest has no file with them. */
const HOST_ID = '11111111-2222-4333-8444-555555555555';
const NVME_HOST = `-q nqn.2014-08.org.nvmexpress:uuid:${HOST_ID} -I ${HOST_ID}`;
/** Size of our target's disk in megabytes. */
const DISK = 96;
/** Time limit of a step in the guest, in seconds. */
const LONG = 300;

const configfs = '/sys/kernel/config';
const subsystem = `${configfs}/nvmet/subsystems/${NQN}`;
const port = `${configfs}/nvmet/ports/1`;
const link = `ln -s ${subsystem} ${port}/subsystems/${NQN}`;

/** Calls `run` while the kernel's target serves a disk in the guest's memory. */
async function withLinuxTarget(rig: Rig, family: 4 | 6, run: () => Promise<void>): Promise<void> {
  await rig.inGuest(
    GUEST,
    [
      'modprobe -a nvmet nvmet-rdma',
      'modprobe null_blk nr_devices=1 gb=1 memory_backed=1',
      `grep -q " ${configfs} " /proc/mounts || mount -t configfs none ${configfs}`,
      `mkdir ${subsystem} && echo 1 > ${subsystem}/attr_allow_any_host`,
      `mkdir ${subsystem}/namespaces/1 && echo -n /dev/nullb0 > ${subsystem}/namespaces/1/device_path`,
      `echo 1 > ${subsystem}/namespaces/1/enable`,
      `mkdir ${port} && echo rdma > ${port}/addr_trtype && echo ipv${family} > ${port}/addr_adrfam`,
      `echo ${address(GUEST, family)} > ${port}/addr_traddr && echo ${PORT} > ${port}/addr_trsvcid`,
      link,
    ].join(' && '),
  );
  try {
    await run();
  } finally {
    await rig.inGuest(
      GUEST,
      `rm -f ${port}/subsystems/${NQN}; rmdir ${port} ${subsystem}/namespaces/1 ${subsystem}; rmmod null_blk`,
    );
  }
}

/** Our initiator writes, and the guest reads its own disk. */
const exercise = (rig: Rig, family: 4 | 6): Promise<void> =>
  withLinuxTarget(rig, family, async () => {
    const lines = await rig.nvme('exercise', address(GUEST, family), NQN).ok();
    const ours = lines.find((line) => line.startsWith('sha256 '));
    const [theirs] = await rig.inGuest(GUEST, 'dd if=/dev/nullb0 bs=1M count=4 2>/dev/null | sha256sum');
    if (ours !== `sha256 ${theirs?.split(' ')[0]}`)
      throw new Error(`The guest's disk is not as written: ${theirs}`);
    rig.note(lines[0]!);
  });

/** The kernel's target removes its port, and adds it again. */
const survive = (rig: Rig, family: 4 | 6): Promise<void> =>
  withLinuxTarget(rig, family, async () => {
    const program = rig.nvme('survive', address(GUEST, family), NQN);
    await program.line(/^writing/);
    await rig.inGuest(GUEST, `rm ${port}/subsystems/${NQN}`);
    await program.line(/^lost/);
    await rig.inGuest(GUEST, link);
    await program.line(/^verified/);
    await program.ok();
  });

const serve = async (rig: Rig, family: 4 | 6, ...more: string[]): Promise<Program> => {
  const size = ['--size', String(DISK)];
  const server = rig.nd('nvme', 'serve', '--address', address(HERE, family), '--nqn', NQN, ...size, ...more);
  await server.line(/^listening/);
  return server;
};

/** Calls `run` while the guest has our target's disk as /dev/nvme0n1. */
async function withDisk(rig: Rig, family: 4 | 6, run: (guest: Run) => Promise<void>): Promise<void> {
  const there = `-t rdma -a ${address(HERE, family)} -s ${PORT}`;
  const guest: Run = async (...lines) => (await rig.inGuest(GUEST, lines.join(' && '), LONG)).join('\n');
  await rig.addStorageTools(GUEST);
  const found = await guest(`nvme discover ${there} ${NVME_HOST}`);
  if (!found.includes(NQN)) throw new Error(`nvme discover does not name the subsystem:\n${found}`);
  await guest(
    `nvme connect ${there} ${NVME_HOST} -n ${NQN} --keep-alive-tmo=5 --reconnect-delay=1 --nr-io-queues=4`,
  );
  try {
    await guest('until [ -b /dev/nvme0n1 ]; do sleep 0.05; done');
    await run(guest);
  } finally {
    await guest(`umount /mnt 2>/dev/null; nvme disconnect -n ${NQN}`);
  }
}

type Run = (...lines: string[]) => Promise<string>;

const FILES = 2000;
const makeFileSystem = ['mkfs.ext4 -q -E nodiscard /dev/nvme0n1', 'mount /dev/nvme0n1 /mnt'];
/** Files of many lengths in ten folders, whose checksums are stored elsewhere. */
const makeFiles = [
  'cd /mnt && dd if=/dev/urandom of=seed bs=64k count=1 2>/dev/null',
  'for d in 0 1 2 3 4 5 6 7 8 9; do mkdir -p $d; done',
  `i=0; while [ $i -lt ${FILES} ]; do head -c $((i * 13 + 1)) seed > $((i % 10))/$i; i=$((i + 1)); done`,
  'find . -type f | sort | xargs sha256sum > /tmp/sums && cd /',
];
/** Reads from the disk, not from the guest's caches. */
const checkFiles = [
  'umount /mnt && fsck.ext4 -f -n /dev/nvme0n1 && mount /dev/nvme0n1 /mnt',
  'echo 3 > /proc/sys/vm/drop_caches && cd /mnt && sha256sum -c /tmp/sums > /tmp/checked && cd /',
  'grep -c ": OK" /tmp/checked',
];

const fileSystem = async (rig: Rig, family: 4 | 6): Promise<void> => {
  const server = await serve(rig, family);
  await withDisk(rig, family, async (guest) => {
    await guest(...makeFileSystem, ...makeFiles);
    const checked = await guest(...checkFiles);
    if (!checked.endsWith(String(FILES + 1))) throw new Error(`Not all files are as written:\n${checked}`);
  });
  await server.line(/^gone/);
};

const fio = async (rig: Rig, family: 4 | 6): Promise<void> => {
  await serve(rig, family);
  const job =
    '--filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --size=16m';
  await withDisk(rig, family, async (guest) => {
    for (const shape of [
      '--rw=randwrite --bs=4k --iodepth=16',
      '--rw=write --bs=128k --iodepth=8',
      '--rw=randrw --bsrange=512-64k --bs_unaligned=0 --blockalign=512 --iodepth=32',
    ]) {
      const output = await guest(`fio --name=verify ${job} ${shape}`);
      if (!/err= 0/.test(output)) throw new Error(output);
      const speed = /(?:WRITE|write): .*?bw=([^,]*)/i.exec(output)?.[1];
      rig.note(`fio ${shape}: write ${speed}`);
    }
  });
};

/** Our target is killed while the guest writes files, and restarted with the same file. */
const comesBack = async (rig: Rig, family: 4 | 6): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'nvme-disk-'));
  const file = ['--file', join(folder, 'disk')];
  try {
    const first = await serve(rig, family, ...file);
    await withDisk(rig, family, async (guest) => {
      await guest(...makeFileSystem);
      const writing = guest(...makeFiles, 'sync');
      await rig.inGuest(GUEST, 'until [ -e /mnt/0/200 ]; do sleep 0.05; done');
      first.stop();
      await first.end();
      if (!existsSync(file[1]!)) throw new Error('The target has no file.');
      await serve(rig, family, ...file);
      await writing;
      const checked = await guest(...checkFiles);
      if (!checked.endsWith(String(FILES + 1))) throw new Error(`Not all files are as written:\n${checked}`);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
};

export const nvmeCases: readonly InteropCase[] = FAMILIES.flatMap((family): InteropCase[] => [
  {
    peer: 'nvmet-rdma',
    operation: 'discovery, reads and writes on 4 queues',
    role: 'client',
    family,
    run: (rig) => exercise(rig, family),
  },
  {
    peer: 'nvmet-rdma',
    operation: 'a port that goes and comes back',
    role: 'client',
    family,
    run: (rig) => survive(rig, family),
  },
  {
    peer: 'nvme-rdma',
    operation: `ext4 with ${FILES} files, fsck`,
    role: 'server',
    family,
    run: (rig) => fileSystem(rig, family),
  },
  { peer: 'nvme-rdma', operation: 'fio with verify', role: 'server', family, run: (rig) => fio(rig, family) },
  {
    peer: 'nvme-rdma',
    operation: 'the target is killed and comes back',
    role: 'server',
    family,
    run: (rig) => comesBack(rig, family),
  },
]);
