/** Requests between our queue pairs and the guest's, one behaviour per run: `verbs BEHAVIOUR OWN-ADDRESS GUEST-ADDRESS`. */
import { openProvider } from '../../../winverbs/index.js';
import { gapsOfOurs, gapsOfTheirs, lossyOptions } from './verbs-gaps.js';
import { Hosts } from './verbs-guest.js';
import { naksOfOurs, naksOfTheirs } from './verbs-naks.js';
import { recoveryOfOurs, recoveryOfTheirs } from './verbs-recovery.js';
import { regionsOfOurs, regionsOfTheirs } from './verbs-regions.js';
import { routeOfOurs } from './verbs-route.js';
import { transferOfOurs, transferOfTheirs, windowsOfOurs, windowsOfTheirs } from './verbs-transfer.js';
import { checksums, marksOfTheirs } from './verbs-wire.js';
import { optionsWith } from './with-options.js';

const behaviours: Record<string, (hosts: Hosts) => Promise<void>> = {
  'naks-of-theirs': naksOfTheirs,
  'naks-of-ours': naksOfOurs,
  'gaps-of-ours': gapsOfOurs,
  'gaps-of-theirs': gapsOfTheirs,
  checksums,
  'marks-of-theirs': marksOfTheirs,
  'recovery-of-ours': recoveryOfOurs,
  'recovery-of-theirs': recoveryOfTheirs,
  'transfer-of-ours': transferOfOurs,
  'transfer-of-theirs': transferOfTheirs,
  'route-of-ours': routeOfOurs,
  'windows-of-theirs': windowsOfTheirs,
  'windows-of-ours': windowsOfOurs,
  'regions-of-theirs': regionsOfTheirs,
  'regions-of-ours': regionsOfOurs,
};

const [behaviour = '', own = '', guest = ''] = process.argv.slice(2);
const run = behaviours[behaviour];
if (run === undefined) throw new Error(`Unknown behaviour '${behaviour}'.`);
// The first open of a process determines the options.
using _provider = openProvider(optionsWith(behaviour === 'gaps-of-ours' ? lossyOptions : {}));
using hosts = await Hosts.meet(own, guest);
await run(hosts);
