// Recording rules and alerts: promtool's own checks, and that every alert has tests which can tell something.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { read } from './expressions';
import { type Rule, readRules } from './files';

export const ruleFiles = ['recording.yaml', 'alerts.yaml'];

interface AlertTest {
  interval: string;
  input_series: { series: string }[];
  alert_rule_test?: { alertname: string; exp_alerts?: unknown[] }[];
}

const severities = ['critical', 'warning'];

export const readAll = (folder: string): Rule[] => ruleFiles.flatMap((file) => readRules(join(folder, file)));

function promtool(...words: string[]): string[] {
  const run = spawnSync('promtool', words, { encoding: 'utf8' });
  if (run.error) return [`promtool cannot be run (${run.error.message}): scripts/setup --for tests brings it`];
  return run.status === 0 ? [] : [`promtool ${words.join(' ')}:\n${run.stdout}${run.stderr}`];
}

function written(rule: Rule): string[] {
  const name = rule.alert ?? rule.record ?? '';
  const problems = read(rule.expr).errors;
  if (rule.record && !/^[a-z_]+:[a-z_]+:[a-z0-9_]+$/.test(rule.record)) problems.push('is not called level:metric:operations');
  if (rule.alert) {
    if (!/^Rivulet[A-Z]\w+$/.test(rule.alert)) problems.push('is not called RivuletSomething');
    if (!rule.for) problems.push('has no `for`');
    if (!severities.includes(rule.labels?.severity ?? '')) problems.push(`has no severity of ${severities.join(', ')}`);
    if (!rule.annotations?.summary) problems.push('has no summary');
    if ((rule.annotations?.description ?? '').length < 80) problems.push('has no description that says what to do');
  }
  return problems.map((text) => `${name} ${text}`);
}

/** Metrics of the binary that an alert reads, through recording rules too. */
function inputsOf(expr: string, rules: Rule[]): Set<string> {
  const found = read(expr).selectors.flatMap(({ metric }) => {
    const recorded = rules.find((r) => r.record === metric);
    return recorded ? [...inputsOf(recorded.expr, rules)] : [metric];
  });
  return new Set(found);
}

/** One test must fire it, another must not, and each must feed all that the alert reads. */
function tested(alert: Rule, folder: string, rules: Rule[]): string[] {
  const file = join(folder, 'tests', `${alert.alert}.yaml`);
  let tests: AlertTest[];
  try {
    tests = (parse(readFileSync(file, 'utf8')) as { tests: AlertTest[] }).tests;
  } catch (error) {
    return [`${alert.alert} has no tests: ${(error as Error).message}`];
  }
  const expected = tests.flatMap((t) => t.alert_rule_test ?? []).filter((t) => t.alertname === alert.alert);
  const problems: string[] = [];
  if (!expected.some((t) => (t.exp_alerts ?? []).length > 0)) problems.push(`${alert.alert} has no test that fires it`);
  if (!expected.some((t) => (t.exp_alerts ?? []).length === 0)) problems.push(`${alert.alert} has no test in which it is silent`);
  tests.forEach((test, at) => {
    const fed = new Set(test.input_series.map((s) => s.series.replace(/\{.*/s, '')));
    for (const metric of inputsOf(alert.expr, rules))
      if (!fed.has(metric)) problems.push(`test ${at + 1} of ${alert.alert} feeds no ${metric}`);
  });
  return problems;
}

interface Mutant {
  what: string;
  rule: Rule;
}

const number = /(?<![\w:{"[.])\d+(\.\d+)?(e\d+)?(?![\w\]}"])/g;

/** It never fires; each time and each threshold (0 and 1 are yes and no) is another one. */
function mutantsOf(alert: Rule): Mutant[] {
  const seconds = Number.parseInt(alert.for ?? '0', 10) * (alert.for?.endsWith('s') ? 1 : 60);
  const others = [...alert.expr.matchAll(number)]
    .filter(([text]) => Number(text) > 1 || !Number.isInteger(Number(text)))
    .flatMap((found) =>
      [1.5, 1 / 1.5].map((factor) => {
        const other = String(Number(found[0]) * factor);
        const expr = alert.expr.slice(0, found.index) + other + alert.expr.slice(found.index + found[0].length);
        return { what: `${found[0]} is ${other}`, rule: { ...alert, expr } };
      }),
    );
  const times = [2, 0.5].map((factor) => ({
    what: `it waits for ${seconds * factor}s`,
    rule: { ...alert, for: `${seconds * factor}s` },
  }));
  return [{ what: 'it can never fire', rule: { ...alert, expr: 'vector(1) < 0' } }, ...times, ...others];
}

function survives(mutant: Mutant, folder: string): boolean {
  const broken = mkdtempSync(join(tmpdir(), 'rivulet-rules-'));
  try {
    for (const file of ruleFiles) {
      const groups = parse(readFileSync(join(folder, file), 'utf8')) as { groups: { rules: Rule[] }[] };
      for (const group of groups.groups)
        for (const rule of group.rules)
          if (rule.alert === mutant.rule.alert) Object.assign(rule, { expr: mutant.rule.expr, for: mutant.rule.for });
      writeFileSync(join(broken, file), JSON.stringify(groups)); // JSON is YAML, too
    }
    const test = parse(readFileSync(join(folder, 'tests', `${mutant.rule.alert}.yaml`), 'utf8')) as { rule_files: string[] };
    test.rule_files = ruleFiles.map((file) => join(broken, file));
    writeFileSync(join(broken, 'test.yaml'), JSON.stringify(test));
    return spawnSync('promtool', ['test', 'rules', join(broken, 'test.yaml')], { encoding: 'utf8' }).status === 0;
  } finally {
    rmSync(broken, { recursive: true });
  }
}

/** Tests that pass with another alert than ours hold nothing. */
const notByChance = (alert: Rule, folder: string): string[] => {
  if (!survives({ what: 'nothing is changed', rule: alert }, folder)) return [`${alert.alert} cannot be tested with mutants`];
  return mutantsOf(alert)
    .filter((mutant) => survives(mutant, folder))
    .map(({ what }) => `the tests of ${alert.alert} pass although ${what}`);
};

export function checkRules(folder: string): string[] {
  const rules = readAll(folder);
  const alerts = rules.filter((r) => r.alert);
  const files = readdirSync(join(folder, 'tests')).map((file) => join(folder, 'tests', file));
  const sound = [
    ...rules.flatMap(written),
    ...alerts.flatMap((a) => tested(a, folder, rules)),
    ...files.filter((f) => !alerts.some((a) => f.endsWith(`/${a.alert}.yaml`))).map((f) => `${f} tests no alert of ours`),
    ...promtool('check', 'rules', ...ruleFiles.map((file) => join(folder, file))),
    ...promtool('test', 'rules', ...files),
  ];
  return sound.length > 0 ? sound : alerts.flatMap((a) => notByChance(a, folder));
}
