/** The style sheet of the page of `nd top --web`. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #ffffff; --ink: #1b1f27; --soft: #5d6675; --line: #e1e5eb; --hover: #eef2fb;
  --c0: #2563eb; --c1: #d97706; --c2: #dc2626; --c3: #7c3aed; --c4: #0d9488; --good: #15803d; --bad: #b91c1c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11141a; --card: #1a1f28; --ink: #e6e9ef; --soft: #98a2b3; --line: #2b323e; --hover: #232b38;
    --c0: #6ea8fe; --c1: #fbbf24; --c2: #f87171; --c3: #b79cff; --c4: #2dd4bf; --good: #4ade80; --bad: #f87171;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
header { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; padding: 10px 20px; background: var(--card); border-bottom: 1px solid var(--line); }
h1 { margin: 0; font-size: 17px; letter-spacing: .01em; }
h2 { margin: 0 0 8px; font-size: 14px; font-weight: 600; }
h2 small { margin-left: 6px; font-weight: 400; color: var(--soft); }
.host { color: var(--soft); }
.grow { flex: 1; }
.state::before { content: ""; display: inline-block; width: 8px; height: 8px; margin-right: 6px; border-radius: 50%; background: var(--c1); }
.state.live::before { background: var(--good); }
.state.lost::before { background: var(--bad); }
.state { color: var(--soft); font-size: 13px; }
.pick { display: flex; align-items: center; gap: 6px; color: var(--soft); font-size: 13px; min-width: 0; }
select, button { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 7px; padding: 4px 9px; max-width: 260px; }
button { cursor: pointer; }
button:hover, select:hover { background: var(--hover); }
button[aria-pressed="true"] { background: var(--c0); border-color: var(--c0); color: var(--card); }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 1px; }
main { max-width: 1500px; margin: 0 auto; padding: 16px 20px 40px; }
.empty { margin: 24px auto; max-width: 44em; padding: 14px 18px; text-align: center; color: var(--soft); background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
[hidden] { display: none !important; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(124px, 1fr)); gap: 12px; margin-bottom: 12px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 9px 14px; }
.tile b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 12px; }
.tile.warn b { color: var(--bad); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(400px, 100%), 1fr)); gap: 12px; margin-bottom: 12px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; min-width: 0; }
.card.wide { margin-bottom: 12px; }
.chart { position: relative; }
.chart svg { display: block; width: 100%; height: 168px; }
.chart text { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; }
.rule { stroke: var(--line); stroke-width: 1; }
.cross { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.curve { fill: none; stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
.area { stroke: none; opacity: .12; }
.s0 { stroke: var(--c0); color: var(--c0); } .s1 { stroke: var(--c1); color: var(--c1); } .s2 { stroke: var(--c2); color: var(--c2); } .s3 { stroke: var(--c3); color: var(--c3); }
.area.s0 { fill: var(--c0); } .area.s1 { fill: var(--c1); } .area.s2 { fill: var(--c2); } .area.s3 { fill: var(--c3); }
.s1.curve { stroke-dasharray: 6 3; } .s2.curve { stroke-dasharray: 2 3; } .s3.curve { stroke-dasharray: 8 3 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 0; padding: 0; list-style: none; font-size: 12.5px; color: var(--soft); }
.legend svg { width: 22px; height: 8px; margin-right: 6px; display: inline-block; vertical-align: middle; }
.legend b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { text-align: right; font-weight: 500; color: var(--soft); font-size: 12px; }
th, td { padding: 5px 7px; border-bottom: 1px solid var(--line); }
td { text-align: right; }
th.t, td.t { text-align: left; }
th:first-child, td:first-child { padding-left: 2px; }
th:last-child, td:last-child { padding-right: 2px; }
tbody tr:last-child td { border-bottom: 0; }
tbody tr.row { cursor: pointer; }
tbody tr.row:hover { background: var(--hover); }
tbody tr.chosen { background: var(--hover); box-shadow: inset 3px 0 var(--c0); }
td.program { max-width: 250px; overflow: hidden; text-overflow: ellipsis; }
td.warn { color: var(--bad); font-weight: 600; }
td.dim { color: var(--soft); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--c0); }
th[aria-sort] { color: var(--ink); }
.tag { padding: 1px 7px; border-radius: 9px; border: 1px solid var(--line); font-size: 12px; }
.tag.good { color: var(--good); } .tag.bad { color: var(--bad); }
@media (max-width: 640px) {
  header { padding: 8px 12px; position: static; }
  main { padding: 12px 10px 30px; }
  .card { padding: 10px 12px; }
  .tiles { grid-template-columns: repeat(2, 1fr); gap: 8px; }
  .charts { gap: 8px; }
  select { max-width: 150px; }
}
@media (prefers-reduced-motion: no-preference) { .tile b { transition: color .3s; } }
`;
