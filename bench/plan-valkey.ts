/** Rows of examples/valkey: Valkey's protocol over RDMA, and over TCP with the same server. They need root. */
import { type Amount, PER_SECOND, type Row, TCP, US } from './row.js';

const SIZE = 64;

export function valkeyRows({ seconds }: Amount): Row[] {
  return [1, 64].map((inFlight) => {
    const job = { size: SIZE, inFlight, seconds: 5 * seconds };
    return {
      name: `valkey request ${inFlight}`,
      title: `Valkey's protocol between two network namespaces: requests of ${SIZE} bytes, ${inFlight === 1 ? 'awaited' : `${inFlight} at a time`}`,
      unit: PER_SECOND,
      contestants: [
        { label: US, by: 'valkey', job: { ...job, over: 'RDMA' } },
        { label: TCP, by: 'valkey', job: { ...job, over: 'TCP' } },
      ],
      targets: [],
    };
  });
}
