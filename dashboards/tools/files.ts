// The files that are checked, as values. Paths are from dashboards/.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import { parse } from 'yaml';

export type Dashboard = dashboard.Dashboard;
export type Panel = dashboard.Panel & { options?: Record<string, unknown> };

export interface Target {
  refId: string;
  expr: string;
  legendFormat?: string;
  datasource?: { type?: string; uid?: string };
  instant?: boolean;
  format?: string;
}

export interface Named {
  file: string;
  dashboard: Dashboard;
}

export interface Rule {
  file: string;
  group: string;
  record?: string;
  alert?: string;
  expr: string;
  for?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export const readDashboards = (folder: string): Named[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({ file, dashboard: JSON.parse(readFileSync(join(folder, file), 'utf8')) as Dashboard }));

export function readRules(file: string): Rule[] {
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { name: string; rules: Omit<Rule, 'file' | 'group'>[] }[] };
  return groups.flatMap((group) => group.rules.map((rule) => ({ ...rule, file, group: group.name })));
}

export interface Row {
  title: string;
  /** Nobody sees its panels before asking. */
  folded: boolean;
  panels: Panel[];
}

/** A folded row holds its panels; those of another one stand behind it. */
export function rowsOf(d: Dashboard): Row[] {
  const rows: Row[] = [];
  for (const p of d.panels ?? [])
    if (p.type === 'row') {
      const row = p as dashboard.RowPanel;
      rows.push({ title: row.title ?? '', folded: row.collapsed, panels: [...(row.panels ?? [])] as Panel[] });
    } else {
      if (rows.length === 0) rows.push({ title: '', folded: false, panels: [] });
      rows.at(-1)!.panels.push(p as Panel);
    }
  return rows;
}

/** All but the headings of rows; those of folded rows too. */
export const panelsOf = (d: Dashboard): Panel[] => rowsOf(d).flatMap((row) => row.panels);
export const foldedPanelsOf = (d: Dashboard): Panel[] => rowsOf(d).flatMap((row) => (row.folded ? row.panels : []));

export const targetsOf = (p: Panel): Target[] => (p.targets ?? []) as unknown as Target[];

const emptyMark = 'May be empty: ';
/** The reason why the panel may be empty, or undefined. */
export const mayBeEmpty = (p: Panel): string | undefined => p.description?.split(emptyMark)[1];

/** Names of core/metrics.def, with their prefix; what every process exports goes with them. */
export function readMetrics(definitions: string): Map<string, string> {
  const metrics = new Map<string, string>();
  for (const [, kind, name] of readFileSync(definitions, 'utf8').matchAll(/^RIVULET_METRIC\((\w+), (\w+),/gm))
    metrics.set(`rivulet_${name}`, kind!);
  return metrics;
}

export const processMetrics: ReadonlyMap<string, string> = new Map([
  ['process_cpu_seconds_total', 'counter'],
  ['process_open_fds', 'gauge'],
  ['process_max_fds', 'gauge'],
  ['process_virtual_memory_bytes', 'gauge'],
  ['process_resident_memory_bytes', 'gauge'],
  ['process_start_time_seconds', 'gauge'],
  ['process_threads', 'gauge'],
]);
