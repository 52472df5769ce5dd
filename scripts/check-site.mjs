// Follows every link of the API site, which TypeDoc has written to docs/api: to files and to anchors. `npm run docs` runs it.
//
//   node scripts/check-site.mjs [FOLDER]
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const site = resolve(process.argv[2] ?? fileURLToPath(new URL('../docs/api', import.meta.url)));

const decoded = (text) =>
  decodeURIComponent(text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'"));

/** The anchors of each page, read once. */
const anchors = new Map();
function anchorsOf(file) {
  if (!anchors.has(file)) {
    const found = readFileSync(file, 'utf8').matchAll(/\b(?:id|name)="([^"]*)"/g);
    anchors.set(file, new Set([...found].map(([, name]) => decoded(name))));
  }
  return anchors.get(file);
}

let links = 0;
const broken = [];
for (const name of readdirSync(site, { recursive: true })) {
  if (!name.endsWith('.html')) continue;
  const page = join(site, name);
  for (const [, link] of readFileSync(page, 'utf8').matchAll(/\bhref="([^"]+)"/g)) {
    if (/^[a-z]+:/.test(link)) continue;
    links += 1;
    const [path, anchor] = decoded(link).split('#');
    const target = path === '' ? page : join(dirname(page), path);
    const there =
      existsSync(target) && (!anchor || !target.endsWith('.html') || anchorsOf(target).has(anchor));
    if (!there) broken.push(`${relative(site, page)}: ${link}`);
  }
}

for (const one of broken) console.error(`broken link in ${one}`);
console.log(`${links} links, ${broken.length} broken`);
process.exitCode = broken.length > 0 || links === 0 ? 1 : 0;
