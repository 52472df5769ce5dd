/** The other side of rig/cm-peer.py, one behaviour per run: `cm-peer BEHAVIOUR OWN-ADDRESS GUEST-ADDRESS`. */
import { readCounters } from '../../../kernel-bridge/index.js';
import { type KernelOptionsInput, openProvider } from '../../../winverbs/index.js';
import { crossingOfOurs, crossingOfTheirs, sequenceOfTheirs } from './cm-end.js';
import { goneOptions, peerGone, rejectionLost } from './cm-gone.js';
import { CmHosts } from './cm-guest.js';
import {
  lossOptions,
  oursLostAsClient,
  oursLostAsServer,
  oursTwice,
  theirsLostAsClient,
  theirsLostAsServer,
  theirsTwice,
} from './cm-lost.js';
import { mraAsClient, mraAsServer, mraOptions } from './cm-mra.js';
import { privateOfOurs, privateOfTheirs, sidrOfOurs, sidrOfTheirs } from './cm-private.js';
import { optionsWith } from './with-options.js';

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
  'sequence-of-theirs': { run: sequenceOfTheirs },
  'ours-lost-as-client': { options: lossOptions.oursAsClient, run: oursLostAsClient },
  'ours-lost-as-server': { options: lossOptions.oursAsServer, run: oursLostAsServer },
  'theirs-lost-as-client': { options: lossOptions.theirs, run: theirsLostAsClient },
  'theirs-lost-as-server': { options: lossOptions.theirsAsServer, run: theirsLostAsServer },
  'mra-as-client': { options: mraOptions.client, run: mraAsClient },
  'mra-as-server': { run: mraAsServer },
  gone: { options: goneOptions, run: peerGone },
  'rejection-lost': { options: goneOptions, run: rejectionLost },
  'ours-twice': { options: lossOptions.twice, run: oursTwice },
  'theirs-twice': { options: lossOptions.theirs, run: theirsTwice },
};

const [name = '', own = '', guest = ''] = process.argv.slice(2);
const behaviour = behaviours[name];
if (behaviour === undefined) throw new Error(`'${name}' is none of ${Object.keys(behaviours).join(', ')}.`);
// The first open of a process determines the options.
const provider = openProvider(optionsWith(behaviour.options ?? {}));
const hosts = await CmHosts.meet(own, guest);
try {
  await behaviour.run(hosts);
} catch (error) {
  console.log(JSON.stringify(readCounters().cm));
  console.log(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
hosts[Symbol.dispose]();
provider.release();
// If the guest is off, TCP would wait for it.
process.exit();
