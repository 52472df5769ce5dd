/** The page of `nd top --web`: a single document that loads nothing from elsewhere. */
import { script } from './page-script.js';
import { style } from './page-style.js';

/** Values that the server inserts into the page. */
export interface PageParts {
  /** Permits only the page's own style and script. */
  readonly nonce: string;
  /** The name of this host. */
  readonly host: string;
  readonly delayMs: number;
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%232563eb'/%3E%3Cpath d='M2 11l3-5 3 3 2-4 4 6' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E";

/** Creates the document. */
export function page({ nonce, host, delayMs }: PageParts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>nd top · ${escaped(host)}</title>
<link rel="icon" href="${icon}">
<style nonce="${nonce}">${style}</style>
</head>
<body data-delay="${delayMs}">
<header>
  <h1>nd top</h1>
  <span class="host">${escaped(host)}</span>
  <span id="state" class="state" role="status">connecting …</span>
  <span class="grow"></span>
  <label class="pick">Process <select id="pick"><option value="">all</option></select></label>
  <label class="pick">Last <select id="span"><option value="60" selected>minute</option><option value="300">5 minutes</option></select></label>
  <button id="pause" type="button" aria-pressed="false">Pause</button>
</header>
<main>
  <p id="empty" class="empty" hidden>No process of this user is using the software HCA. New processes appear here automatically.</p>
  <section id="tiles" class="tiles" aria-label="Current values"></section>
  <section id="charts" class="charts" aria-label="Charts"></section>
  <section class="card wide"><h2>Processes <small id="processes-note"></small></h2><div class="scroll"><table id="processes"></table></div></section>
  <section class="card wide"><h2>Queue pairs <small id="pairs-note"></small></h2><div class="scroll"><table id="pairs"></table></div></section>
  <section class="card wide"><h2>Endpoints <small id="endpoints-note"></small></h2><div class="scroll"><table id="endpoints"></table></div></section>
</main>
<noscript><p class="empty">This page draws its charts by a script; nd stat shows the same in a terminal.</p></noscript>
<script nonce="${nonce}">${script}</script>
</body>
</html>
`;
}
