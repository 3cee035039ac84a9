// The rules of Grafana's dashboard-linter that concern Prometheus, and a few of our own, over a finished dashboard.
import * as units from '@grafana/grafana-foundation-sdk/units';
import { rateInterval, read } from './expressions';
import { type Dashboard, foldedPanelsOf, type Panel, panelsOf, type Target, targetsOf } from './files';

export interface Finding {
  rule: string;
  text: string;
}
export type Rule = [name: string, check: (d: Dashboard) => string[]];

const ourDatasource = '${datasource}';
const isOurs = (ref: unknown): boolean => (ref as { uid?: string } | undefined)?.uid === ourDatasource;
const variable = (d: Dashboard, name: string) => d.templating?.list?.find((v) => v.name === name);
const knownUnits = new Set<string>(Object.values(units));

const eachPanel = (d: Dashboard, check: (p: Panel) => string[]): string[] =>
  panelsOf(d).flatMap((p) => check(p).map((text) => `panel "${p.title ?? ''}" ${text}`));
const eachTarget = (d: Dashboard, check: (t: Target, p: Panel) => string[]): string[] =>
  eachPanel(d, (p) => targetsOf(p).flatMap((t) => check(t, p).map((text) => `${t.refId}: ${text}`)));
/** Of annotations too: what a rule about queries says holds for every query. */
const eachQuery = (d: Dashboard, check: (expr: string) => string[]): string[] => [
  ...eachTarget(d, (t) => check(t.expr)),
  ...(d.annotations?.list ?? []).flatMap((a) => check(a.expr ?? '').map((text) => `annotation "${a.name}": ${text}`)),
];

function templated(name: string, label: string): (d: Dashboard) => string[] {
  return (d) => {
    const v = variable(d, name);
    if (!v) return [`has no variable ${name}`];
    return [
      isOurs(v.datasource) ? '' : 'does not use the datasource that was chosen',
      v.type === 'query' ? '' : 'is not a query',
      v.label === label ? '' : `is not labelled ${label}`,
      v.multi && v.includeAll ? '' : 'takes only one value',
      v.allValue === '.+' ? '' : 'has another value for all than .+',
    ].flatMap((text) => (text ? [`variable ${name} ${text}`] : []));
  };
}

const matched = (label: string) => (d: Dashboard) =>
  eachQuery(d, (expr) =>
    read(expr)
      .selectors.filter((s) => !s.matchers.some((m) => m.label === label && m.operator === '=~' && m.value === `$${label}`))
      .map((s) => `${s.text} does not match ${label}=~"$${label}"`),
  );

/** What counts faults: its picture is a line at 0 while all is well. */
const faults =
  /^rivulet_(rows_dropped|kafka_errors|kafka_gap_records|nonfinite_batches|backpressure_seconds|control_records_ignored|throttle_events|sensor_read_errors)_/;

/** Columns that the panels of each line of the grid take. */
function widths(d: Dashboard): Map<number, number> {
  const taken = new Map<number, number>();
  for (const { gridPos } of panelsOf(d)) if (gridPos) taken.set(gridPos.y, (taken.get(gridPos.y) ?? 0) + gridPos.w);
  return taken;
}

const perSecond = new Set(['rate', 'irate', 'increase']);

export const rules: Rule[] = [
  [
    'template-datasource',
    (d) => {
      const found = (d.templating?.list ?? []).filter((v) => v.type === 'datasource');
      const [only] = found;
      const named = only?.name === 'datasource' && only.label === 'Data Source';
      return found.length === 1 && named && only.query === 'prometheus' ? [] : ['there must be one variable for the datasource, called datasource, of Prometheus'];
    },
  ],
  ['template-job', templated('job', 'Job')],
  ['template-instance', templated('instance', 'Instance')],
  ['template-topic', templated('topic', 'Topic')],
  [
    'template-label-promql',
    (d) =>
      (d.templating?.list ?? [])
        .filter((v) => v.type === 'query')
        .flatMap((v) => {
          const query = (v.query as { query?: string } | undefined)?.query ?? '';
          const inner = /^label_values\((.+), \w+\)$/.exec(query)?.[1];
          if (!inner) return [`variable ${v.name} is no label_values(SELECTOR, LABEL): ${query}`];
          return read(inner).errors.map((e) => `variable ${v.name} ${e}`);
        }),
  ],
  [
    'template-on-time-change-reload',
    (d) =>
      (d.templating?.list ?? [])
        .filter((v) => v.type === 'query' && v.refresh !== 2)
        .map((v) => `variable ${v.name} is not asked again when the time changes`),
  ],
  [
    'template-used',
    (d) => {
      const all = [...panelsOf(d).flatMap(targetsOf).map((t) => t.expr)].join('\n');
      return ['job', 'instance', 'topic'].filter((name) => !all.includes(`$${name}"`)).map((name) => `no panel uses $${name}`);
    },
  ],
  [
    'panel-datasource',
    (d) =>
      eachPanel(d, (p) =>
        isOurs(p.datasource) && targetsOf(p).every((t) => isOurs(t.datasource)) ? [] : ['does not use ${datasource}'],
      ),
  ],
  [
    'panel-title-description',
    (d) =>
      eachPanel(d, (p) =>
        p.title && /^[A-Z].+\.$/.test(p.description ?? '') ? [] : ['needs a title and a description of whole sentences'],
      ),
  ],
  [
    'panel-units',
    (d) =>
      eachPanel(d, (p) => (knownUnits.has(p.fieldConfig?.defaults.unit ?? '') ? [] : ['has no unit that Grafana knows'])),
  ],
  [
    'full-lines',
    (d) => [...widths(d)].filter(([, taken]) => taken !== 24).map(([y, taken]) => `the panels at ${y} take ${taken} of 24 columns`),
  ],
  [
    'faults-are-folded',
    (d) => {
      const folded = new Set(foldedPanelsOf(d));
      return eachPanel(d, (p) => {
        const read_ = targetsOf(p).flatMap((t) => read(t.expr).selectors);
        const shows = p.type === 'timeseries' && read_.length > 0 && read_.every((s) => faults.test(s.metric));
        return shows && !folded.has(p) ? ['is flat while all is well: its row must be folded'] : [];
      });
    },
  ],
  [
    'learning-first',
    (d) => {
      const learns = (p: Panel): boolean => targetsOf(p).some((t) => /rivulet_(train_loss|eval_score)/.test(t.expr));
      const at = panelsOf(d).findIndex(learns);
      return at > 0 ? ['must begin with what shows whether it learns'] : [];
    },
  ],
  ['panel-no-targets', (d) => eachPanel(d, (p) => (targetsOf(p).length > 0 ? [] : ['asks nothing']))],
  [
    'panel-unique-title',
    (d) => {
      const titles = panelsOf(d).map((p) => p.title);
      return titles.filter((t, at) => titles.indexOf(t) !== at).map((t) => `two panels are called "${t ?? ''}"`);
    },
  ],
  ['target-promql', (d) => eachQuery(d, (expr) => read(expr).errors)],
  [
    'target-rate-interval',
    (d) =>
      eachQuery(d, (expr) =>
        read(expr)
          .selectors.filter((s) => perSecond.has(s.within) && s.range !== rateInterval)
          .map((s) => `${s.within}(${s.text}) is not over [$__rate_interval]`),
      ),
  ],
  ['target-job', matched('job')],
  ['target-instance', matched('instance')],
  [
    'target-counter-agg',
    (d) =>
      eachQuery(d, (expr) =>
        read(expr)
          .selectors.filter((s) => s.metric.endsWith('_total') && !perSecond.has(s.within))
          .map((s) => `counter ${s.metric} is not in a rate, irate or increase`),
      ),
  ],
  ['uneditable-dashboard', (d) => (d.editable === false ? [] : ['must not be editable: its source is'])],
  ['fixed-uid', (d) => (/^rivulet-[a-z]+$/.test(d.uid ?? '') ? [] : ['must have a uid of ours'])],
  [
    'links',
    (d) =>
      (d.links ?? []).some((l) => l.tags.includes('rivulet') && l.includeVars && l.keepTime) && d.tags?.includes('rivulet')
        ? []
        : ['must link to the other dashboards, with variables and time'],
  ],
  [
    'links-to-dashboards',
    (d) =>
      [...JSON.stringify(d.panels).matchAll(/"\/d\/([^?"]*)/g)]
        .filter(([, uid]) => !['rivulet-fleet', 'rivulet-node', 'rivulet-synchronization', 'rivulet-device'].includes(uid!))
        .map(([, uid]) => `leads to ${uid}, which is none of ours`),
  ],
  [
    'annotations',
    (d) =>
      ['Views', 'Restarts', 'Dropped rows']
        .filter((name) => !d.annotations?.list?.some((a) => a.name === name && a.expr))
        .map((name) => `has no annotation ${name}`),
  ],
];

export const lint = (d: Dashboard): Finding[] =>
  rules.flatMap(([rule, check]) => check(d).map((text) => ({ rule, text })));
