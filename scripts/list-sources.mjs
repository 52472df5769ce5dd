// Prints the C++ sources below the given folders, for binding.gyp: `node scripts/list-sources.mjs folder …`. Of folders
// named after a system it takes this system's.
import { readdirSync } from 'node:fs';
import { join, sep } from 'node:path';

const others = ['linux', 'windows'].filter(
  (system) => system !== { win32: 'windows' }[process.platform] && system !== process.platform,
);

for (const folder of process.argv.slice(2)) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.cc'));
  for (const file of files.sort())
    if (!file.split(sep).some((part) => others.includes(part))) console.log(join(folder, file));
}
