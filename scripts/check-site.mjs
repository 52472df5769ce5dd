// Checks the API site, which TypeDoc has written to docs/api. Every link must lead to an existing file and anchor, and the members of each large
// class of the main modules must have an `@category`. `npm run docs` runs it.
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

/** Whether a page has members that are listed by kind or as "Other", although its class needs categories. */
function lacksCategories(text) {
  const lists = [...text.matchAll(/data-key="section-([^"]+)"/g)].map(([, title]) => title);
  if (lists.includes('Other')) return true;
  const members = text.match(/<section class="tsd-panel tsd-member/g)?.length ?? 0;
  return members > 6 && lists.some((title) => ['Constructors', 'Accessors', 'Methods'].includes(title));
}

/** Pages of classes and interfaces in networkdirect/net, networkdirect and networkdirect/winverbs. Interfaces of data need no categories. */
const classPages = ['classes', 'interfaces'].flatMap((folder) =>
  readdirSync(join(site, folder))
    .filter((name) => /^networkdirect(_net|_winverbs)?\./.test(name))
    .map((name) => join(folder, name)),
);
const uncategorized = classPages.filter((name) => lacksCategories(readFileSync(join(site, name), 'utf8')));

for (const one of broken) console.error(`broken link in ${one}`);
for (const one of uncategorized) console.error(`members without @category in ${one}`);
console.log(`${links} links, ${broken.length} broken`);
console.log(
  `${classPages.length} classes and interfaces, ${uncategorized.length} with members without @category`,
);
const checked = links > 0 && classPages.length > 0;
process.exitCode = checked && broken.length === 0 && uncategorized.length === 0 ? 0 : 1;
