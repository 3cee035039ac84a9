// Faults planted in a good dashboard: every rule of lint.ts must find its own, or it guards nothing.
import { type Dashboard, foldedPanelsOf, panelsOf, targetsOf } from './files';
import { lint, rules } from './lint';

type Plant = (d: Dashboard) => void;

const variable = (d: Dashboard, name: string) => d.templating!.list!.find((v) => v.name === name)!;
const ask = (d: Dashboard, expr: string): void => void (targetsOf(panelsOf(d)[0]!)[0]!.expr = expr);
const all = 'job=~"$job", instance=~"$instance"';

const plants: [rule: string, Plant][] = [
  ['template-datasource', (d) => void (variable(d, 'datasource').name = 'source')],
  ['template-job', (d) => void (variable(d, 'job').multi = false)],
  ['template-instance', (d) => void (variable(d, 'instance').allValue = '.*')],
  ['template-topic', (d) => void (variable(d, 'topic').label = 'topics')],
  ['template-label-promql', (d) => void (variable(d, 'topic').query = { query: 'label_values(rivulet_ready{, topic)' })],
  ['template-on-time-change-reload', (d) => void (variable(d, 'topic').refresh = 1)],
  ['template-used', (d) => panelsOf(d).flatMap(targetsOf).forEach((t) => (t.expr = t.expr.replaceAll('$topic"', '.+"')))],
  ['panel-datasource', (d) => void (panelsOf(d)[0]!.datasource = { type: 'prometheus', uid: 'mine' })],
  ['panel-title-description', (d) => void delete panelsOf(d)[0]!.description],
  ['panel-units', (d) => void (panelsOf(d)[0]!.fieldConfig!.defaults.unit = 'rows')],
  ['full-lines', (d) => void (panelsOf(d)[0]!.gridPos!.w = 4)],
  ['faults-are-folded', (d) => d.panels!.splice(1, 0, ...foldedPanelsOf(d).map((p) => ({ ...p }) as never))],
  ['learning-first', (d) => void d.panels!.push(...d.panels!.splice(0, 5))],
  ['panel-no-targets', (d) => void (panelsOf(d)[0]!.targets = [])],
  ['panel-unique-title', (d) => void (panelsOf(d)[0]!.title = panelsOf(d)[1]!.title!)],
  ['target-promql', (d) => ask(d, `sum(rivulet_ready{${all}}`)],
  ['target-rate-interval', (d) => ask(d, `rate(rivulet_rows_trained_total{${all}}[5m])`)],
  ['target-job', (d) => ask(d, 'rivulet_ready{instance=~"$instance"}')],
  ['target-instance', (d) => ask(d, `rivulet_ready{${all}} + rivulet_collective_rank{job=~"$job"}`)],
  ['target-counter-agg', (d) => ask(d, `sum(rivulet_rows_trained_total{${all}})`)],
  ['uneditable-dashboard', (d) => void (d.editable = true)],
  ['fixed-uid', (d) => void delete d.uid],
  ['links', (d) => void (d.links = [])],
  ['links-to-dashboards', (d) => void (panelsOf(d)[0]!.links = [{ url: '/d/rivulet-nodes?x' } as never])],
  ['annotations', (d) => void d.annotations!.list!.shift()],
];

/** Sentences about rules that did not find what was planted for them. */
export function blindRules(good: Dashboard): string[] {
  const unplanted = rules.map(([name]) => name).filter((name) => !plants.some(([rule]) => rule === name));
  const missed = plants.flatMap(([rule, plant]) => {
    const broken = structuredClone(good);
    plant(broken);
    return lint(broken).some((f) => f.rule === rule) ? [] : [`lint rule ${rule} did not find the fault planted for it`];
  });
  return [...unplanted.map((name) => `nothing is planted for the lint rule ${name}`), ...missed];
}
