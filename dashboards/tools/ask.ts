// ask URL SECONDS RATE-INTERVAL: what every panel is answered, as JSON for dashboards/draw. Run in dashboards/.
import { substitute } from './expressions';
import { type Panel, readDashboards, rowsOf, targetsOf } from './files';
import { everything } from './live';
import { Prometheus } from './prometheus';

const [url, seconds, rateInterval] = process.argv.slice(2);
if (!url || !seconds || !rateInterval) throw new Error('ask URL SECONDS RATE-INTERVAL');
const prometheus = new Prometheus(url);
const values = everything(rateInterval);
const step = Math.max(1, Math.round(Number(seconds) / 120));

async function answered(p: Panel): Promise<object> {
  return {
    title: p.title,
    description: p.description,
    type: p.type,
    gridPos: p.gridPos,
    unit: p.fieldConfig?.defaults.unit,
    fieldConfig: p.fieldConfig,
    transformations: p.transformations,
    answers: await Promise.all(
      targetsOf(p).map(async (t) => {
        const expr = substitute(t.expr, values);
        const result = t.instant ? await prometheus.instant(expr) : await prometheus.range(expr, Number(seconds), step);
        return { legend: t.legendFormat ?? '', result };
      }),
    ),
  };
}

async function main(): Promise<void> {
  const dashboards = readDashboards('grafana').map(async ({ dashboard }) => ({
    title: dashboard.title,
    uid: dashboard.uid,
    description: dashboard.description,
    rows: await Promise.all(
      rowsOf(dashboard).map(async ({ title, folded, panels }) => ({ title, folded, panels: await Promise.all(panels.map(answered)) })),
    ),
  }));
  process.stdout.write(JSON.stringify({ step, seconds: Number(seconds), dashboards: await Promise.all(dashboards) }));
}

main().catch((error: Error) => {
  console.error(`error: ${url} did not answer: ${error.message}`);
  process.exitCode = 1;
});
