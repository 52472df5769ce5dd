import { PortTable } from '../../kernel-bridge/kernel/hca-driver/hca-ports.js';
import type { HostNetwork } from '../../kernel-bridge/kernel/hca-driver/network-interfaces.js';
import { WorkItems } from '../../kernel-bridge/kernel/io-manager/work-items.js';
import { softHca } from '../../kernel-bridge/kernel/soft-hca/soft-hca.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import { FakeHca } from './fake-hca.js';
import { FakeCm } from './rig-cm.js';

/** The port table of the software HCA's devices on this network. */
export function tableOf(network: HostNetwork, now?: () => number, work = new WorkItems()): PortTable {
  const options = kernelOptionsSchema.parse({});
  const make = softHca({
    native: new FakeHca(),
    network,
    options,
    createConnectionManager: () => new FakeCm(),
  });
  return new PortTable([make(() => undefined)], network, work, now);
}
