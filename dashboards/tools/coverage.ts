// Every metric of the binary is shown, and nothing is shown that the binary does not have.
import { familyOf, read } from './expressions';
import { mayBeEmpty, type Named, panelsOf, type Rule, targetsOf } from './files';

/** Metrics that no panel, rule or alert shows, and why. One that is shown after all is a finding. */
export const notShown: Record<string, string> = {};

/** Of Prometheus itself. */
const ofPrometheus = new Set(['up', 'ALERTS']);

interface Use {
  where: string;
  expr: string;
  /** Of a panel that says why it may be empty: what no machine of these tells is not a series at all. */
  untold?: boolean;
}

export const usesOf = (dashboards: Named[], rules: Rule[]): Use[] => [
  ...dashboards.flatMap(({ file, dashboard }) =>
    panelsOf(dashboard).flatMap((p) => targetsOf(p).map((t) => ({
        where: `${file}: panel "${p.title ?? ''}"`,
        expr: t.expr,
        untold: mayBeEmpty(p) !== undefined,
      })),
    ),
  ),
  ...rules.map((r) => ({ where: r.alert ?? r.record ?? '', expr: r.expr })),
];

/** `families`: what the binary has. `source`: where that is known from. `live`: what it has on these machines only. */
export function checkCoverage(
  dashboards: Named[],
  rules: Rule[],
  families: ReadonlySet<string>,
  source: string,
  live = false,
): string[] {
  const recorded = new Set(rules.flatMap((r) => (r.record ? [r.record] : [])));
  const shown = new Set<string>();
  const problems: string[] = [];
  for (const { where, expr, untold } of usesOf(dashboards, rules))
    for (const { metric } of read(expr).selectors) {
      const family = familyOf(metric, families);
      shown.add(family);
      if (live && untold && !families.has(family)) continue;
      if (!families.has(family) && !recorded.has(metric) && !ofPrometheus.has(metric))
        problems.push(`${where} asks for ${metric || 'a metric without a name'}, which ${source} does not have`);
    }
  for (const name of recorded) if (!shown.has(name)) problems.push(`${name} is recorded and nobody uses it`);
  for (const name of families) {
    if (!shown.has(name) && !(name in notShown)) problems.push(`no panel, rule or alert shows ${name} of ${source}`);
    if (shown.has(name) && name in notShown) problems.push(`${name} is shown, and in the list of what is not shown`);
  }
  return problems;
}
