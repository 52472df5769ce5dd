// Licenses of third-party code in a package: headers with which the addons are compiled, and libraries linked into them. The package's
// JavaScript uses third-party code through dependencies, which have their own licenses.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const folderOf = (name) => dirname(require.resolve(`${name}/package.json`));
/** The license of the C library and winpthreads for Windows, where Debian installs it. */
const mingw = '/usr/share/doc/mingw-w64-x86-64-dev/copyright';

const section = (name, use, text) => `## ${name}\n\n${use}\n\n${text.trim()}\n`;
const fromFile = (name, use, file) => {
  if (!existsSync(file)) throw new Error(`The license of ${name} must be in ${file}, which does not exist.`);
  return section(name, use, readFileSync(file, 'utf8'));
};

const headers = (use) => [
  fromFile('node-addon-api', use, join(folderOf('node-addon-api'), 'LICENSE.md')),
  fromFile('node-api-headers', use, join(folderOf('node-api-headers'), 'LICENSE')),
];
const gcc = section(
  'libstdc++ and libgcc',
  'Linked into the addons.',
  'GNU General Public License, version 3, with the GCC Runtime Library Exception, version 3.1, which permits this without conditions.',
);

/** The THIRD-PARTY-NOTICES.md of a package. `os` is that of its addons, or 'source' for the package of the sources. */
export function notices(os) {
  const parts = {
    source: () => [
      ...headers('In `headers`.'),
      section('libuv', 'In `headers`.', 'MIT; each of its files begins with its licence.'),
    ],
    linux: () => [...headers('Compiled into the addons.'), gcc],
    win32: () => [
      ...headers('Compiled into the addon.'),
      gcc,
      fromFile('mingw-w64', 'Its C library and winpthreads are linked into the addon.', mingw),
    ],
  };
  return `# Code of others in this package\n\n${parts[os]().join('\n')}`;
}
