// Every panel, variable, annotation, rule and alert, asked of a Prometheus that scrapes the binary.
import { checkCoverage } from './coverage';
import { read, substitute } from './expressions';
import { mayBeEmpty, type Named, panelsOf, type Rule, type Target, targetsOf } from './files';
import { isFinite_, Prometheus } from './prometheus';

/** As Grafana puts them in when all is chosen. */
export const everything = (rateInterval: string): Record<string, string> => ({
  job: '.+',
  instance: '.+',
  topic: '.+',
  __rate_interval: rateInterval,
  __interval: '5s',
  __range: '1m',
});

interface Question {
  where: string;
  ask: () => Promise<string[]>;
}

const labelsOf = (legend: string): string[] => [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);

class Live {
  constructor(
    private readonly prometheus: Prometheus,
    private readonly values: Record<string, string>,
    private readonly full: string | undefined,
  ) {}

  private async answered(expr: string, emptyIsGood: boolean): Promise<string[]> {
    const answer = await this.prometheus.instant(substitute(expr, this.values));
    return answer.some(isFinite_) || emptyIsGood ? [] : [`has no answer: ${expr}`];
  }

  private async target(target: Target, emptyIsGood: boolean): Promise<string[]> {
    const answer = await this.prometheus.instant(substitute(target.expr, this.values));
    if (!answer.some(isFinite_)) return emptyIsGood ? [] : [`has no answer: ${target.expr}`];
    return labelsOf(target.legendFormat ?? '')
      .filter((label) => !answer.every((s) => label in s.metric))
      .map((label) => `names its lines by the label ${label}, which the answer lacks: ${target.expr}`);
  }

  private async variable(query: string): Promise<string[]> {
    const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? [];
    const values = selector && label ? await this.prometheus.labelValues(label, substitute(selector, this.values)) : [];
    return values.length > 0 ? [] : [`has no value: ${query}`];
  }

  ofDashboard({ file, dashboard }: Named): Question[] {
    return [
      ...panelsOf(dashboard).flatMap((p) =>
        targetsOf(p).map((t) => ({
          where: `${file}: panel "${p.title ?? ''}"`,
          ask: () => this.target(t, mayBeEmpty(p) !== undefined && dashboard.uid !== this.full),
        })),
      ),
      ...(dashboard.annotations?.list ?? []).map((a) => ({
        where: `${file}: annotation "${a.name}"`,
        ask: () => this.answered(a.expr ?? '', false),
      })),
      ...(dashboard.templating?.list ?? [])
        .filter((v) => v.type === 'query')
        .map((v) => ({
          where: `${file}: variable ${v.name}`,
          ask: () => this.variable((v.query as { query: string }).query),
        })),
    ];
  }

  /** A rule has an answer; an alert that does not fire has none, but all that it reads is there. */
  ofRule(rule: Rule): Question[] {
    const where = rule.alert ?? rule.record ?? '';
    if (rule.record) return [{ where, ask: () => this.answered(rule.expr, false) }];
    return [
      { where, ask: () => this.answered(rule.expr, true) },
      ...read(rule.expr).selectors.map((s) => ({ where, ask: () => this.answered(s.text, false) })),
    ];
  }

  async loaded(rules: Rule[]): Promise<string[]> {
    const found = await this.prometheus.rules();
    return rules.flatMap((rule) => {
      const name = rule.alert ?? rule.record ?? '';
      const error = found.get(name);
      if (error === undefined) return [`${name} is not loaded`];
      return error ? [`${name} fails: ${error}`] : [];
    });
  }

  async names(dashboards: Named[], rules: Rule[]): Promise<string[]> {
    const jobs = await this.prometheus.labelValues('job', 'rivulet_build_info');
    if (jobs.length === 0) return ['no target exports rivulet_build_info'];
    const families = await Promise.all(jobs.map((job) => this.prometheus.families(job)));
    return checkCoverage(dashboards, rules, new Set(families.flatMap((f) => [...f])), '/metrics', true);
  }

  async problems(dashboards: Named[], rules: Rule[]): Promise<string[]> {
    const questions = [...dashboards.flatMap((d) => this.ofDashboard(d)), ...rules.flatMap((r) => this.ofRule(r))];
    const answers = questions.map(({ where, ask }) =>
      ask().then(
        (problems) => problems.map((p) => `${where} ${p}`),
        (error: Error) => [`${where} fails: ${error.message}`],
      ),
    );
    const general = [this.loaded(rules), this.names(dashboards, rules)].map((p) =>
      p.catch((error: Error) => [`Prometheus does not answer: ${error.message}`]),
    );
    return [...new Set((await Promise.all([...answers, ...general])).flat())];
  }
}

export interface Asked {
  problems: string[];
  seconds: number;
}

/** Asks again and again until nothing is wrong or the time is over. */
export async function askUntilGood(
  url: string,
  rateInterval: string,
  waitSeconds: number,
  dashboards: Named[],
  rules: Rule[],
  /** The uid of a dashboard of which no panel may be empty. */
  full: string | undefined,
): Promise<Asked> {
  const live = new Live(new Prometheus(url), everything(rateInterval), full);
  const began = Date.now();
  for (;;) {
    const problems = await live.problems(dashboards, rules);
    const seconds = (Date.now() - began) / 1000;
    if (problems.length === 0 || seconds >= waitSeconds) return { problems, seconds };
    await new Promise((wake) => setTimeout(wake, 1000));
  }
}
