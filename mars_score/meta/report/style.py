"""The look of the page: light and dark, wide and narrow, on screen and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --raised: #ffffff; --tint: #f3f5f7; --ink: #1b1f24; --muted: #5c6670; --rule: #dfe3e6;
  --plain: #a9b6c2; --accent: #1f5fa8; --warm: #b4470f; --heat: 31, 95, 168; --cold: 180, 71, 15;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --raised: #1a1e23; --tint: #20252b; --ink: #e3e6e9; --muted: #9ba6b0; --rule: #30363d;
    --plain: #56626e; --accent: #7db3f0; --warm: #f19a62; --heat: 90, 155, 230; --cold: 235, 130, 70;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: break-word;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.frame { display: grid; grid-template-columns: 15rem minmax(0, 1fr); max-width: 92rem; margin: 0 auto; }
main { padding: 2.5rem 2.5rem 6rem; min-width: 0; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 1.25rem; text-wrap: balance; }
h2 {
  font-size: 1.45rem; line-height: 1.25; letter-spacing: -.01em; margin: 3.5rem 0 .6rem; padding-top: 1.25rem;
  border-top: 1px solid var(--rule);
}
h3 { font-size: 1.05rem; line-height: 1.35; margin: 2.25rem 0 .4rem; }
p, ul { max-width: 46rem; }
p { margin: .4rem 0 .8rem; white-space: pre-line; }
.note { color: var(--muted); font-size: .925rem; }
.summary { padding-left: 1.2rem; font-size: 1.05rem; }
.summary li { margin: .35rem 0; }
.notices {
  max-width: 46rem; margin: 1.5rem 0; padding: .7rem 1rem; background: var(--tint);
  border-left: 3px solid var(--warm); border-radius: 0 .4rem .4rem 0; font-size: .925rem;
}
.notices h2 { all: unset; display: block; font-weight: 650; color: var(--warm); }
.notices ul { margin: .25rem 0 0; padding-left: 1.1rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

.contents { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto;
  padding: 2.9rem 0 2rem 1.5rem; font-size: .875rem; line-height: 1.4; }
.contents summary { font-weight: 650; cursor: pointer; color: var(--muted); }
.contents ol { list-style: none; margin: .5rem 0 0; padding: 0; }
.contents ol ol { margin: 0 0 .4rem; padding-left: .8rem; border-left: 1px solid var(--rule); }
.contents a { display: block; padding: .2rem 0; color: var(--ink); text-decoration: none; }
.contents ol ol a { color: var(--muted); }
.contents a:hover { color: var(--accent); text-decoration: underline; }

.box { overflow: auto; max-width: 100%; width: fit-content; max-height: 85vh; margin: .6rem 0 1.5rem;
  position: relative; border: 1px solid var(--rule); border-radius: .45rem; background: var(--raised); }
table { border-collapse: separate; border-spacing: 0; font-size: .9rem; line-height: 1.35; }
th, td { padding: .42rem .8rem; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td { border-top: 1px solid var(--rule); }
tbody th { border-top: 1px solid var(--rule); font-weight: 500; }
thead th { position: sticky; top: 0; z-index: 2; background: var(--tint); font-weight: 650; vertical-align: bottom;
  white-space: normal; min-width: 4.5rem; }
tr > :first-child { position: sticky; left: 0; text-align: left; background: var(--raised);
  border-right: 1px solid var(--rule); z-index: 1; white-space: normal; min-width: 8.5rem; max-width: 18rem; }
thead tr > :first-child { z-index: 3; background: var(--tint); }
tbody tr:hover > * { background-color: var(--tint); }
td.wordy { white-space: pre-line; text-align: left; min-width: 16rem; max-width: 32rem; }
td.none { color: var(--muted); }
td.warm { --tone: rgba(var(--heat), var(--share)); }
td.cold { --tone: rgba(var(--cold), var(--share)); }
td.warm, td.cold { background-image: linear-gradient(var(--tone), var(--tone)); }
thead button { all: unset; cursor: pointer; }
thead button::after { content: "↕"; color: var(--plain); padding-left: .3em; font-weight: 400; }
thead [aria-sort=ascending] button::after { content: "↑"; color: var(--accent); }
thead [aria-sort=descending] button::after { content: "↓"; color: var(--accent); }
thead button:focus-visible { outline: 2px solid var(--accent); }

figure { margin: .6rem 0 1.5rem; }
svg { display: block; width: 100%; height: auto; overflow: visible; stroke-linejoin: round; }
.bars { display: inline-block; vertical-align: top; width: min(100%, 33.5rem); padding-right: 1.5rem; }
.bars figure { margin-bottom: .25rem; }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(12.5rem, 1fr)); gap: 1.1rem 1.25rem;
  margin: .6rem 0 1.5rem; }
.multiples figure { margin: 0; max-width: 21rem; display: flex; flex-direction: column;
  justify-content: flex-end; }
.multiples figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .6rem;
  font-size: .85rem; line-height: 1.35; margin-bottom: .25rem; }
.multiples strong { font-weight: 600; }
.multiples span { color: var(--muted); font-variant-numeric: tabular-nums; }

.row { max-width: 54rem; margin: .9rem 0 1.4rem; border: 1px solid var(--rule); border-radius: .5rem;
  background: var(--raised); padding: .9rem 1.2rem 1rem; }
h4 { font-size: 1rem; line-height: 1.35; margin: 0; }
.facts { display: flex; flex-wrap: wrap; gap: .1rem 1.3rem; margin: .15rem 0 .7rem; color: var(--muted);
  font-size: .9rem; font-variant-numeric: tabular-nums; }
.facts b { color: var(--ink); font-weight: 600; }
.facts .above { color: var(--accent); }
.facts .below { color: var(--warm); }
.texts { margin: 0; display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: .5rem 1rem; }
.texts dt { color: var(--muted); font-size: .85rem; line-height: 1.8; }
.texts dd { margin: 0; white-space: pre-line; overflow-wrap: anywhere; }
.texts dd + dd { grid-column: 2; }
.texts .candidate { font-weight: 600; }
.row details summary { cursor: pointer; }
.texts summary { list-style: none; }
.texts summary::-webkit-details-marker { display: none; }
.more { color: var(--accent); font-size: .85rem; white-space: nowrap; font-weight: 400; }
details[open] > summary > .start, details[open] > summary .all { display: none; }
details:not([open]) > summary .less { display: none; }
.augmented { margin: .8rem 0 0; font-size: .92rem; }
.augmented > summary { color: var(--accent); font-size: .9rem; }
.augmented ol { list-style: none; margin: .4rem 0 0; padding: 0; max-width: none; }
.augmented li { display: grid; grid-template-columns: 6.5rem 3.2rem minmax(0, 1fr); gap: 0 1rem; padding: .3rem 0;
  border-top: 1px solid var(--rule); overflow-wrap: anywhere; }
.augmented li > :first-child { color: var(--muted); font-size: .85rem; line-height: 1.65; }
.augmented li > :nth-child(2) { font-variant-numeric: tabular-nums; text-align: right; }

@media (max-width: 64rem) {
  .frame { display: block; }
  .contents { position: static; max-height: none; padding: 1rem 2.5rem 0; }
}
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 4rem; }
  .contents { padding: 1rem 1rem 0; }
  h1 { font-size: 1.55rem; }
  h2 { font-size: 1.25rem; margin-top: 2.5rem; }
  table { font-size: .84rem; }
  th, td { padding: .4rem .55rem; }
  tr > :first-child { min-width: 7rem; max-width: 9rem; }
  .multiples { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem .8rem; }
  td.wordy { min-width: 12rem; max-width: 14rem; overflow-wrap: anywhere; }
  .bars { padding-right: 0; }
  .multiples figcaption { display: block; }
  .multiples span { display: block; }
  .row { padding: .75rem .85rem; }
  .texts { display: block; }
  .texts dt, .texts dd + dd { margin-top: .5rem; }
  .augmented li { grid-template-columns: minmax(0, 1fr) auto; }
  .augmented li > :last-child { grid-column: 1 / -1; }
}
@media print {
  @page { margin: 1.2cm; }
  :root { --paper: #fff; --raised: #fff; --tint: #f3f5f7; --ink: #000; --muted: #444; --rule: #ccc;
    --plain: #a9b6c2; --accent: #1f5fa8; --warm: #b4470f; --heat: 31, 95, 168; --cold: 180, 71, 15; }
  body { font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .frame { display: block; }
  .contents, .more, thead button::after { display: none !important; }
  main { padding: 0; }
  .box { overflow: visible; max-height: none; width: auto; border: 0; }
  table { font-size: 8pt; }
  th, td { padding: 2pt 3pt; }
  thead th, tr > :first-child { position: static; min-width: 0; overflow-wrap: anywhere; }
  tr, figure, .facts { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
}
"""
