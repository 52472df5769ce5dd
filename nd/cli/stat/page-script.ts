/** The browser script of `nd top --web`. It inserts data of processes as text, never as HTML. */
export const script = `
'use strict';
(() => {
const $ = (id) => document.getElementById(id);
const svgNs = 'http://www.w3.org/2000/svg';
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const shape = (name, attributes, text) => {
  const made = document.createElementNS(svgNs, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const units = ['', ' k', ' M', ' G', ' T'];
const short = (value) => {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < 4) { value /= 1000; unit += 1; }
  const digits = unit === 0 ? (value >= 10 || Number.isInteger(value) ? 0 : 1) : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[unit];
};
const bytes = (value) => {
  const power = value < 1024 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), 4);
  const scaled = value / 1024 ** power;
  return (Number.isInteger(scaled) || scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][power];
};
const withUnit = (text) => (/ [kMGT]$/.test(text) ? text : text + ' ') + 'B/s';
const byteRate = (value) => withUnit(short(value));
/** A round number without trailing zeros. */
const round = (value) => short(value).replace(/(\\.\\d*?)0+(?= |$)/, '$1').replace(/\\.(?= |$)/, '');
const qpn = (value) => (value === 0 ? '' : '0x' + value.toString(16).padStart(6, '0'));
const duration = (seconds) => seconds < 90 ? seconds + ' s' : seconds < 5400 ? Number((seconds / 60).toFixed(seconds < 600 ? 1 : 0)) + ' min' : (seconds / 3600).toFixed(1) + ' h';
const keyOf = (row) => row.pid + '/' + row.slot;
const rate = (name) => (row) => row.rates ? row.rates[name] : 0;

const charts = [
  { title: 'Messages per second', format: short, lines: [['out', rate('messagesOut')], ['in', rate('messagesIn')]] },
  { title: 'Bytes per second', format: byteRate, axis: (value) => withUnit(round(value)), lines: [['out', rate('bytesOut')], ['in', rate('bytesIn')]] },
  { title: 'Retries per second', format: short, lines: [['retransmitted packets', rate('retransmits')], ['RNR', rate('rnr')], ['NAK', rate('naks')], ['timeouts', rate('timeouts')]] },
  { title: 'Windows: packets in flight', format: short, lines: [['in flight', (row) => row.inFlight], ['window', (row) => row.window]] },
  { title: 'Connections', format: short, lines: [['connected', (row) => row.connections], ['queue pairs', (row) => row.queuePairs], ['listeners', (row) => row.listeners]] },
  { title: 'Direct access to peers’ memory', format: short, lines: [['requests per second', rate('direct')]] },
];

let frames = [];
let latest;
let chosen = '';
let paused = false;
let sortBy = 'messages';
let hover;
const delay = Number(document.body.dataset.delay);

const total = (rows, value) => rows.reduce((sum, row) => sum + value(row), 0);
const shown = (frame) => chosen === '' ? frame.rows : frame.rows.filter((row) => keyOf(row) === chosen);

/** The next larger number of the form 1, 2 or 5 times a power of ten. */
const roundUp = (value) => {
  if (value <= 4) return 4;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((n) => n * power).find((n) => n >= value);
};

class Chart {
  constructor(plan) {
    this.plan = plan;
    this.svg = shape('svg', { role: 'img', 'aria-label': plan.title });
    this.values = plan.lines.map(() => element('b'));
    const legend = element('ul', { class: 'legend' }, ...plan.lines.map(([name], n) => {
      const sample = shape('svg', { viewBox: '0 0 22 8', 'aria-hidden': 'true' });
      sample.append(shape('path', { class: 'curve s' + n, d: 'M1 4H21' }));
      return element('li', {}, sample, name + ' ', this.values[n]);
    }));
    this.card = element('div', { class: 'card chart' }, element('h2', {}, plan.title), this.svg, legend);
    this.svg.addEventListener('pointermove', (event) => {
      const box = this.svg.getBoundingClientRect();
      hover = Math.min(Math.max((event.clientX - box.left - this.left) / (box.width - this.left - 8), 0), 1);
      drawCharts();
    });
    this.svg.addEventListener('pointerleave', () => { hover = undefined; drawCharts(); });
  }
  draw(from, to, list) {
    const { plan, svg } = this;
    const width = svg.clientWidth || 400, height = 168, left = this.left = 62, top = 8, bottom = height - 22, right = width - 8;
    svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
    const rows = list.map(shown);
    const series = plan.lines.map(([, value]) => rows.map((some) => total(some, value)));
    const most = roundUp(Math.max(...series.flat(), 0));
    const x = (at) => left + (at - from) / (to - from) * (right - left);
    const y = (value) => bottom - value / most * (bottom - top);
    const parts = [];
    for (let n = 0; n <= 4; n += 2) {
      const at = y(most * n / 4);
      parts.push(shape('line', { class: 'rule', x1: left, x2: right, y1: at, y2: at }));
      parts.push(shape('text', { x: left - 7, y: at + 4, 'text-anchor': 'end' }, (plan.axis ?? round)(most * n / 4)));
    }
    const span = (to - from) / 1000;
    for (const [part, anchor] of [[0, 'start'], [0.5, 'middle'], [1, 'end']]) {
      const ago = Math.round(span * (1 - part));
      parts.push(shape('text', { x: left + part * (right - left), y: height - 5, 'text-anchor': anchor }, ago === 0 ? 'now' : '−' + duration(ago)));
    }
    series.forEach((values, n) => {
      if (values.length === 0) return;
      const points = values.map((value, at) => x(list[at].at).toFixed(1) + ' ' + y(value).toFixed(1));
      const line = 'M' + points.join('L');
      if (n === 0 && points.length > 1) parts.push(shape('path', { class: 'area s0', d: line + 'L' + x(list.at(-1).at).toFixed(1) + ' ' + bottom + 'L' + x(list[0].at).toFixed(1) + ' ' + bottom + 'Z' }));
      parts.push(shape('path', { class: 'curve s' + n, d: points.length > 1 ? line : line + 'h.01' }));
    });
    let shownAt = list.length - 1;
    if (hover !== undefined && list.length > 0) {
      const at = from + hover * (to - from);
      shownAt = list.reduce((best, frame, n) => Math.abs(frame.at - at) < Math.abs(list[best].at - at) ? n : best, 0);
      const place = x(list[shownAt].at);
      parts.push(shape('line', { class: 'cross', x1: place, x2: place, y1: top, y2: bottom }));
    }
    series.forEach((values, n) => { this.values[n].textContent = values.length > 0 ? plan.format(values[shownAt]) : '–'; });
    svg.replaceChildren(...parts);
  }
}
const drawn = charts.map((plan) => new Chart(plan));
$('charts').append(...drawn.map(({ card }) => card));

function drawCharts() {
  const to = frames.at(-1)?.at ?? Date.now();
  const from = to - Number($('span').value) * 1000;
  const list = frames.filter(({ at }) => at >= from);
  for (const chart of drawn) chart.draw(from, to, list);
}

function drawTiles() {
  const rows = latest ? shown(latest) : [];
  const sum = (value) => total(rows, value);
  const retries = sum(rate('retransmits')) + sum(rate('naks')) + sum(rate('rnr')) + sum(rate('timeouts'));
  const tiles = [
    ['messages/s', short(sum(rate('messagesOut')) + sum(rate('messagesIn')))],
    ['out', byteRate(sum(rate('bytesOut')))],
    ['in', byteRate(sum(rate('bytesIn')))],
    ['direct accesses/s', short(sum(rate('direct')))],
    ['retries/s', short(retries), retries >= 1],
    ['connections', short(sum((row) => row.connections))],
    ['queue pairs', short(sum((row) => row.queuePairs))],
    ['registered', bytes(sum((row) => row.registered))],
  ];
  $('tiles').replaceChildren(...tiles.map(([name, value, warn]) => element('div', { class: warn ? 'tile warn' : 'tile' }, element('b', {}, value), element('span', {}, name))));
}

const problems = { refused: 'reports nothing (statistics: false)', silent: 'does not respond', otherVersion: 'another version of networkdirect', unreadable: 'sends malformed replies' };
const number = (value, format = short) => [format(value), value === 0 ? 'dim' : ''];
const alarm = (value) => [short(value), value >= 0.05 ? 'warn' : 'dim'];
const both = (a, b) => (row) => rate(a)(row) + rate(b)(row);

const columns = [
  { name: 'PID', sort: 'pid', weight: (row) => -row.pid, cell: (row) => [row.pid] },
  { name: 'Program', text: true, cell: (row) => [row.program || 'slot ' + row.slot, 't program'] },
  { name: 'Up', cell: (row) => [row.problem ? '' : duration(row.uptime)] },
  { name: 'QPs', sort: 'qps', weight: (row) => row.queuePairs, cell: (row) => number(row.queuePairs) },
  { name: 'Connected', sort: 'connections', weight: (row) => row.connections, cell: (row) => number(row.connections) },
  { name: 'UDP', text: true, cell: (row) => [row.wire, 't'] },
  { name: 'Msg/s out', sort: 'messages', weight: both('messagesOut', 'messagesIn'), cell: (row) => number(rate('messagesOut')(row)) },
  { name: 'Msg/s in', cell: (row) => number(rate('messagesIn')(row)) },
  { name: 'Out', sort: 'bytes', weight: both('bytesOut', 'bytesIn'), cell: (row) => number(rate('bytesOut')(row), byteRate) },
  { name: 'In', cell: (row) => number(rate('bytesIn')(row), byteRate) },
  { name: 'Direct/s', sort: 'direct', weight: rate('direct'), cell: (row) => number(rate('direct')(row)) },
  { name: 'In flight', cell: (row) => [row.inFlight + '/' + row.window, row.inFlight === 0 ? 'dim' : ''] },
  { name: 'Retransmits/s', sort: 'retries', weight: (row) => both('retransmits', 'naks')(row) + both('rnr', 'timeouts')(row), cell: (row) => alarm(rate('retransmits')(row)) },
  { name: 'NAK/s', cell: (row) => alarm(rate('naks')(row)) },
  { name: 'RNR/s', cell: (row) => alarm(rate('rnr')(row)) },
  { name: 'Timeouts/s', cell: (row) => alarm(rate('timeouts')(row)) },
  { name: 'Registered', sort: 'memory', weight: (row) => row.registered, cell: (row) => number(row.registered, bytes) },
];

const cellOf = ([text, kind = '']) => element('td', kind === '' ? {} : { class: kind, ...(kind.includes('program') && { title: text }) }, text instanceof Node ? text : String(text));
const fill = (table, head, rows) => {
  // The focus stays on the button that was pressed.
  const focus = document.activeElement?.dataset?.sort;
  table.replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
  if (focus !== undefined) table.querySelector('[data-sort="' + focus + '"]')?.focus();
};

function drawProcesses() {
  const head = element('tr', {}, ...columns.map(({ name, sort, text }) => {
    const cell = element('th', { scope: 'col', ...(text && { class: 't' }), ...(sort === sortBy && { 'aria-sort': 'descending' }) });
    if (sort === undefined) cell.append(name);
    else {
      const button = element('button', { type: 'button', 'data-sort': sort }, name + (sort === sortBy ? ' ▾' : ''));
      button.addEventListener('click', () => { sortBy = sort; drawProcesses(); });
      cell.append(button);
    }
    return cell;
  }));
  const { weight } = columns.find(({ sort }) => sort === sortBy);
  const rows = [...latest.rows].sort((a, b) => weight(b) - weight(a) || a.pid - b.pid || a.slot - b.slot);
  fill($('processes'), head, rows.map((row) => {
    const cells = row.problem ? [[row.pid], [row.program || 'slot ' + row.slot, 't program'], [problems[row.problem], 't dim']] : columns.map(({ cell }) => cell(row));
    const line = element('tr', { class: keyOf(row) === chosen ? 'row chosen' : 'row' }, ...cells.map(cellOf));
    if (row.problem) line.lastChild.setAttribute('colspan', columns.length - 2);
    line.addEventListener('click', () => choose(chosen === keyOf(row) ? '' : keyOf(row)));
    return line;
  }));
  const processes = new Set(latest.rows.map(({ pid }) => pid)).size;
  $('processes-note').textContent = processes + (latest.rows.length > processes ? ', with ' + latest.rows.length + ' HCAs' : '');
}

const tag = (state, good, bad) => element('span', { class: 'tag' + (good.includes(state) ? ' good' : bad.includes(state) ? ' bad' : '') }, state);
const headOf = (names) => element('tr', {}, ...names.map((name) => element('th', { scope: 'col', ...(name.startsWith('<') && { class: 't' }) }, name.replace('<', ''))));

function drawLists() {
  const rows = shown(latest);
  const pairs = rows.flatMap((row) => row.pairs.map((pair) => ({ ...pair, pid: row.pid })));
  pairs.sort((a, b) => b.sentRate + b.receivedRate - a.sentRate - a.receivedRate || a.pid - b.pid || a.qpn - b.qpn);
  const most = pairs.slice(0, 200);
  fill($('pairs'), headOf(['PID', 'QPN', '<Type', '<State', '<Local', '<Remote', '<Link', 'Sent/s', 'Received/s', 'Send queue', 'Receives', 'In flight', 'Retries', 'Round trip']), most.map((pair) => element('tr', {}, ...[
    [pair.pid], [qpn(pair.qpn)], [pair.type, 't'], [tag(pair.state, ['RTS'], ['ERROR', 'SQERROR']), 't'], [pair.local, 't'],
    [pair.remote === '' ? '' : pair.remote + ' ' + qpn(pair.remoteQpn), 't'], [pair.link === 'local' ? 'shared memory' : pair.link === 'wire' ? 'UDP' : '', 't'],
    number(pair.sentRate), number(pair.receivedRate), [pair.sendWaiting + '/' + pair.sendEntries, pair.sendWaiting === 0 ? 'dim' : ''],
    [pair.sharedReceives ? 'shared' : pair.receiveWaiting + '/' + pair.receiveEntries, 'dim'], [pair.inFlight + '/' + pair.window, pair.inFlight === 0 ? 'dim' : ''],
    [pair.rnrWaiting ? pair.rnrRetries + ' RNR' : pair.retries, pair.rnrWaiting || pair.retries > 0 ? 'warn' : 'dim'],
    [pair.roundTripNs === 0 ? '' : (pair.roundTripNs / 1000).toFixed(0) + ' µs'],
  ].map(cellOf))));
  const all = total(rows, (row) => row.queuePairs);
  $('pairs-note').textContent = most.length < all ? 'the ' + most.length + ' busiest of ' + all : String(all);
  const endpoints = rows.flatMap((row) => row.endpoints.map((one) => ({ ...one, pid: row.pid })));
  fill($('endpoints'), headOf(['PID', '<Type', '<State', '<Local', '<Remote', 'QPN']), endpoints.slice(0, 200).map((one) => element('tr', {}, ...[
    [one.pid], [one.type, 't'], [tag(one.state, ['connected', 'listening'], []), 't'], [one.local, 't'], [one.remote, 't'], [qpn(one.qpn)],
  ].map(cellOf))));
  $('endpoints-note').textContent = String(endpoints.length);
}

function drawPick() {
  const options = [['', 'all'], ...latest.rows.map((row) => [keyOf(row), row.pid + '  ' + row.program])];
  if (chosen !== '' && !options.some(([value]) => value === chosen)) options.push([chosen, chosen.split('/')[0] + '  (ended)']);
  const text = JSON.stringify(options);
  if ($('pick').dataset.text === text) return;
  $('pick').dataset.text = text;
  $('pick').replaceChildren(...options.map(([value, name]) => element('option', { value }, name)));
  $('pick').value = chosen;
}

function draw() {
  if (latest === undefined) return;
  $('empty').hidden = latest.rows.length > 0;
  drawPick();
  drawTiles();
  drawCharts();
  drawProcesses();
  drawLists();
}
function choose(key) {
  chosen = key;
  $('pick').value = key;
  draw();
}
$('pick').addEventListener('change', (event) => choose(event.target.value));
$('span').addEventListener('change', drawCharts);
$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  $('pause').textContent = paused ? 'Resume' : 'Pause';
  if (!paused) draw();
});
new ResizeObserver(() => drawCharts()).observe($('charts'));

const say = (kind, text) => { $('state').className = 'state ' + kind; $('state').textContent = text; };
let received = 0;
const events = new EventSource('events');
events.addEventListener('history', ({ data }) => { frames = JSON.parse(data); drawCharts(); });
events.addEventListener('view', ({ data }) => {
  latest = JSON.parse(data);
  received = Date.now();
  frames.push(latest);
  // The lists of a sample are shown only in the tables.
  const before = frames.at(-2);
  if (before !== undefined) for (const row of before.rows) { delete row.pairs; delete row.endpoints; }
  while (frames.length > 0 && latest.at - frames[0].at > 300000) frames.shift();
  say('live', paused ? 'paused' : 'live');
  if (!paused) draw();
});
events.addEventListener('problem', ({ data }) => say('lost', JSON.parse(data).message));
events.addEventListener('error', () => say('lost', 'nd top has ended or cannot be reached'));
setInterval(() => { if (received > 0 && Date.now() - received > Math.max(5000, 3 * delay)) say('lost', 'no data for ' + Math.round((Date.now() - received) / 1000) + ' s'); }, 1000);
drawTiles();
drawCharts();
})();
`;
