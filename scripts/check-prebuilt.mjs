// Checks which system libraries the prebuilt addons need: node scripts/check-prebuilt.mjs [PLATFORM …]. Fails for a glibc newer than 2.31
// (Debian 11), for any libstdc++, for a library that does not belong to the C library, and for a wrong architecture; on Windows, for a
// library that does not belong to Windows.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('../build/prebuilt', import.meta.url)));
const newestGlibc = [2, 31];
const processors = { x64: 'Advanced Micro Devices X86-64', arm64: 'AArch64' };
const libraries = {
  gnu: /^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d)$/,
  musl: /^libc(\.musl-x86_64)?\.so(\.1)?$/,
};

/** Libraries that every Windows 10 has, and the program that loads the addon. */
const windowsLibraries =
  /^(node\.exe|(KERNEL32|ADVAPI32|WS2_32|msvcrt|IPHLPAPI|bcrypt|ntdll)\.dll|api-ms-win-core-synch-l1-2-0\.dll)$/i;

/** @returns whether the addon for Windows is valid */
function checkWindows(platform) {
  const file = join(platform, 'networkdirect_hca.node');
  const text = execFileSync('x86_64-w64-mingw32-objdump', ['-p', file], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const needed = found(text, /DLL Name: (\S+)/g);
  const errors = [
    ...(text.includes('pei-x86-64') ? [] : ['it was not built for x64']),
    ...needed.filter((one) => !windowsLibraries.test(one)).map((one) => `it needs ${one}`),
    ...(/napi_register_module_v1/.test(text) ? [] : ['it is not a Node-API addon']),
  ];
  console.log(`${file}: ${needed.join(', ')}`);
  for (const error of errors) console.error(`${file}: ${error}`);
  return errors.length === 0;
}

const isFolder = (entry) => entry.isDirectory();
const given = process.argv.slice(2);
const platforms =
  given.length > 0
    ? given
    : readdirSync('.', { withFileTypes: true })
        .filter(isFolder)
        .map(({ name }) => name);
const found = (text, pattern) => [...new Set([...text.matchAll(pattern)].map(([, one]) => one))].sort();
let failed = false;
for (const platform of platforms) {
  const [system, processor, libc] = platform.split('-');
  if (system === 'win32') {
    failed = !checkWindows(platform) || failed;
    continue;
  }
  for (const name of ['networkdirect_hca.node', 'networkdirect_verbs.node']) {
    const text = execFileSync(
      'readelf',
      ['--wide', '--file-header', '--dynamic', '--version-info', '--dyn-syms', join(platform, name)],
      { encoding: 'utf8' },
    );
    const glibc = found(text, /Name: GLIBC_([\d.]+)/g);
    const libstdcxx = found(text, /Name: ((?:GLIBCXX|CXXABI|GCC)_[\d.]+)/g);
    const needed = found(text, /\(NEEDED\).*\[(.*)\]/g);
    const tooNew = glibc.filter((version) => {
      const [major, minor] = version.split('.').map(Number);
      return major > newestGlibc[0] || (major === newestGlibc[0] && minor > newestGlibc[1]);
    });
    const errors = [
      ...(text.includes(processors[processor]) ? [] : [`it was not built for ${processor}`]),
      ...(libc === 'musl' && glibc.length > 0 ? ['it needs glibc'] : []),
      ...tooNew.map((version) => `it needs glibc ${version}`),
      ...libstdcxx.map((version) => `it needs ${version}`),
      ...needed.filter((one) => !libraries[libc].test(one)).map((one) => `it needs ${one}`),
      ...(/napi_register_module_v1/.test(text) ? [] : ['it is not a Node-API addon']),
    ];
    console.log(`${platform}/${name}: ${needed.join(', ')}; glibc ${glibc.join(', ') || 'none'}`);
    for (const error of errors) console.error(`${platform}/${name}: ${error}`);
    failed ||= errors.length > 0;
  }
}
process.exit(failed ? 1 : 0);
