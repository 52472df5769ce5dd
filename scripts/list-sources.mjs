// Prints the C++ sources below the folders that it is given, for binding.gyp: `node scripts/list-sources.mjs folder …`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

for (const folder of process.argv.slice(2)) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.cc'));
  for (const file of files.sort()) console.log(join(folder, file));
}
