/** Cases of every operation on reliable connections. The sides exchange their addresses over TCP. */
import {
  askGuest,
  FAMILIES,
  GUEST,
  gidIndex,
  HERE,
  type InteropCase,
  MTUS,
  serveGuest,
  TCP_PORT,
} from './case.js';
import { address } from './rig.js';

function allOps(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    MTUS.flatMap((mtu): InteropCase[] => {
      const there = `python3 /share/all-ops.py --errors --mtu ${mtu} --gid ${gidIndex(family)}`;
      const ours = ['-m', String(mtu)];
      return [
        {
          peer: 'all-ops.py',
          operation: 'every RC operation',
          role: 'client',
          family,
          mtu,
          quick: mtu === 1024,
          run: (rig) =>
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              rig.ours('all-ops', '-a', address(GUEST, family), '-e', ...ours),
            ),
        },
        {
          peer: 'all-ops.py',
          operation: 'every RC operation',
          role: 'server',
          family,
          mtu,
          quick: mtu === 4096,
          run: (rig) =>
            serveGuest(
              rig,
              rig.ours('all-ops', '-I', address(HERE, family), ...ours),
              `${there} ${address(HERE, family)}`,
            ),
        },
      ];
    }),
  );
}

/** The same with exactly checked ICRCs, which requires a raw socket on IPv4. */
function exactIcrc(): InteropCase[] {
  const options = { icrc: 'exact' } as const;
  const common = { peer: 'all-ops.py', operation: 'every RC operation, exact ICRC', family: 4 } as const;
  return ([1024, 4096] as const).flatMap((mtu): InteropCase[] => {
    const there = `python3 /share/all-ops.py --errors --mtu ${mtu} --gid ${gidIndex(4)}`;
    const ours = ['-m', String(mtu)];
    return [
      {
        ...common,
        role: 'client',
        mtu,
        quick: mtu === 4096,
        run: (rig) =>
          askGuest(rig, there, 'tcp', TCP_PORT, () =>
            rig.oursWith(options, 'all-ops', '-a', address(GUEST, 4), '-e', ...ours),
          ),
      },
      {
        ...common,
        role: 'server',
        mtu,
        run: (rig) =>
          serveGuest(
            rig,
            rig.oursWith(options, 'all-ops', '-I', address(HERE, 4), ...ours),
            `${there} ${address(HERE, 4)}`,
          ),
      },
    ];
  });
}

function pingpong(): InteropCase[] {
  return FAMILIES.flatMap((family) =>
    MTUS.filter((mtu) => mtu !== 512 && mtu !== 2048).flatMap((mtu): InteropCase[] => {
      const there = `ibv_rc_pingpong -g ${gidIndex(family)} -m ${mtu} -n 50`;
      return [
        {
          peer: 'ibv_rc_pingpong',
          operation: 'SEND, 4096 bytes',
          role: 'client',
          family,
          mtu,
          run: (rig) =>
            askGuest(rig, there, 'tcp', TCP_PORT, () =>
              // The tool only listens on IPv4, but the queue pairs' addresses are of this family.
              rig.ours(
                'pingpong',
                '-a',
                address(GUEST, 4),
                '-I',
                address(HERE, family),
                '-m',
                String(mtu),
                '-n',
                '50',
              ),
            ),
        },
        {
          peer: 'ibv_rc_pingpong',
          operation: 'SEND, 4096 bytes',
          role: 'server',
          family,
          mtu,
          quick: mtu === 1024 && family === 6,
          run: (rig) =>
            serveGuest(
              rig,
              rig.ours('pingpong', '-I', address(HERE, family), '-m', String(mtu), '-n', '50'),
              `${there} ${address(HERE, family)}`,
            ),
        },
      ];
    }),
  );
}

export const rcCases: readonly InteropCase[] = [...allOps(), ...exactIcrc(), ...pingpong()];
