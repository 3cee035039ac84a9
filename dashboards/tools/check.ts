// The command behind dashboards/check, run in dashboards/; usage is there.
import { parseArgs } from 'node:util';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { files } from '../src/all';
import { checkCoverage, usesOf } from './coverage';
import { panelsOf, processMetrics, readDashboards, readMetrics } from './files';
import { lint } from './lint';
import { askUntilGood } from './live';
import { blindRules } from './planted';
import { checkRules, readAll } from './rules';

const committed = 'grafana';
const rulesFolder = 'prometheus';

/** What lies in grafana/ is what src/ makes, to a byte. */
function drift(): string[] {
  const made = files();
  const there = readdirSync(committed).filter((file) => file.endsWith('.json'));
  return [
    ...there.filter((file) => !made.has(file)).map((file) => `${committed}/${file} is made by nothing in src/`),
    ...[...made].flatMap(([file, text]) => {
      const same = there.includes(file) && readFileSync(join(committed, file), 'utf8') === text;
      return same ? [] : [`${committed}/${file} is not what src/ makes: run dashboards/generate`];
    }),
  ];
}

const shownMost = 30;
let failed = false;
function report(what: string, problems: string[]): void {
  console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'} ${what}`);
  for (const problem of problems.slice(0, shownMost)) console.log(`       ${problem}`);
  if (problems.length > shownMost) console.log(`       ... and ${problems.length - shownMost} more`);
  failed ||= problems.length > 0;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      prometheus: { type: 'string' },
      wait: { type: 'string', default: '0' },
      'rate-interval': { type: 'string', default: '10s' },
      full: { type: 'string' },
    },
  });
  const dashboards = readDashboards(committed);
  const rules = readAll(rulesFolder);
  const panels = dashboards.flatMap((d) => panelsOf(d.dashboard)).length;
  if (dashboards.length === 0 || panels === 0 || rules.length === 0) throw new Error('nothing to check');
  const expressions = usesOf(dashboards, rules).length;
  const counted = `${dashboards.length} dashboards, ${panels} panels, ${rules.length} rules, ${expressions} expressions`;
  if (values.prometheus) {
    const wait = Number(values.wait);
    if (values.full && !dashboards.some((d) => d.dashboard.uid === values.full)) throw new Error(`no dashboard ${values.full}`);
    const asked = await askUntilGood(values.prometheus, values['rate-interval'] ?? '10s', wait, dashboards, rules, values.full);
    report(`${counted}, asked of ${values.prometheus} for ${asked.seconds.toFixed(1)} s`, asked.problems);
  } else {
    console.log(counted);
    const metrics = new Set([...readMetrics('../core/metrics.def').keys(), ...processMetrics.keys()]);
    report('grafana/ is what src/ makes', drift());
    for (const d of dashboards) report(`lint of ${d.file}`, lint(d.dashboard).map((f) => `${f.rule}: ${f.text}`));
    report('every lint rule finds the fault that is planted for it', blindRules(dashboards.find((d) => d.dashboard.uid === 'rivulet-synchronization')!.dashboard));
    const uncovered = checkCoverage(dashboards, rules, metrics, 'core/metrics.def');
    report('metrics shown are those of core/metrics.def, and all of them', uncovered);
    report('rules and alerts', checkRules(rulesFolder));
  }
  process.exitCode = failed ? 1 : 0;
}

main().catch((error: Error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 2;
});
