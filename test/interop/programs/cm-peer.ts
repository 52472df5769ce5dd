/** What rig/cm-peer.py is the other side of, one behaviour a run: `cm-peer BEHAVIOUR OWN-ADDRESS GUEST-ADDRESS`. */
import { type KernelOptionsInput, openProvider } from '../../../winverbs/index.js';
import { crossingOfOurs, crossingOfTheirs } from './cm-end.js';
import { CmHosts } from './cm-guest.js';
import { privateOfOurs, privateOfTheirs, sidrOfOurs, sidrOfTheirs } from './cm-private.js';

interface Behaviour {
  readonly options?: KernelOptionsInput;
  run(hosts: CmHosts): Promise<void>;
}

const behaviours: Record<string, Behaviour> = {
  'private-of-ours': { run: privateOfOurs },
  'private-of-theirs': { run: privateOfTheirs },
  'sidr-of-ours': { run: sidrOfOurs },
  'sidr-of-theirs': { run: sidrOfTheirs },
  'crossing-of-ours': { run: crossingOfOurs },
  'crossing-of-theirs': { run: crossingOfTheirs },
};

const [name = '', own = '', guest = ''] = process.argv.slice(2);
const behaviour = behaviours[name];
if (behaviour === undefined) throw new Error(`'${name}' is none of ${Object.keys(behaviours).join(', ')}.`);
// The first open of a process decides on the options.
const provider = openProvider(behaviour.options);
const hosts = await CmHosts.meet(own, guest);
await behaviour.run(hosts);
hosts[Symbol.dispose]();
provider.release();
