/** Requests between our queue pairs and the guest's, one behaviour a run: `verbs BEHAVIOUR OWN-ADDRESS GUEST-ADDRESS`. */
import { Hosts } from './verbs-guest.js';
import { naksOfOurs, naksOfTheirs } from './verbs-naks.js';
import { transferOfOurs, transferOfTheirs, windowsOfOurs, windowsOfTheirs } from './verbs-transfer.js';

const behaviours: Record<string, (hosts: Hosts) => Promise<void>> = {
  'naks-of-theirs': naksOfTheirs,
  'naks-of-ours': naksOfOurs,
  'transfer-of-ours': transferOfOurs,
  'transfer-of-theirs': transferOfTheirs,
  'windows-of-theirs': windowsOfTheirs,
  'windows-of-ours': windowsOfOurs,
};

const [behaviour = '', own = '', guest = ''] = process.argv.slice(2);
const run = behaviours[behaviour];
if (run === undefined) throw new Error(`There is no behaviour '${behaviour}'.`);
using hosts = await Hosts.meet(own, guest);
await run(hosts);
