// Builds PromQL over Rivulet's metrics, filtered by the dashboard's variables.

/** Matchers of every query. */
const chosen = ['job=~"$job"', 'instance=~"$instance"'];

/** Additional matcher for metrics with the label `topic`. */
export const ofTopic = 'topic=~"$topic"';

/** Selects a metric by its full name: series("up"). */
export const series = (name: string, ...matchers: string[]): string =>
  `${name}{${[...chosen, ...matchers].join(', ')}}`;

/** Selects a metric of core/metrics.def by its name without the prefix: rivulet("ready"). */
export const rivulet = (name: string, ...matchers: string[]): string => series(`rivulet_${name}`, ...matchers);

const over = (call: string, name: string, matchers: string[]): string =>
  `${call}(${rivulet(name, ...matchers)}[$__rate_interval])`;

/** Limits `process_*` to Rivulet's processes; the choice "All" of the variable job includes other programs. */
const ours = ` and on (job, instance) ${rivulet('build_info')}`;
export const ofProcess = (name: string): string => series(`process_${name}`) + ours;
export const rateOfProcess = (name: string): string => `rate(${series(`process_${name}`)}[$__rate_interval])${ours}`;

/** Per second. */
export const rate = (name: string, ...matchers: string[]): string => over('rate', name, matchers);
/** Per $__rate_interval. */
export const increase = (name: string, ...matchers: string[]): string => over('increase', name, matchers);

export const sumBy = (labels: string, expr: string): string => `sum by (${labels}) (${expr})`;
export const minBy = (labels: string, expr: string): string => `min by (${labels}) (${expr})`;
export const maxBy = (labels: string, expr: string): string => `max by (${labels}) (${expr})`;

/** Quantile of a histogram, summed over series with equal `labels`. */
export const quantile = (q: number, labels: string, name: string, ...matchers: string[]): string =>
  `histogram_quantile(${q}, sum by (${labels ? `${labels}, ` : ''}le) (${rate(`${name}_bucket`, ...matchers)}))`;

/** Mean of a histogram: sum divided by count. */
export const mean = (labels: string, name: string, ...matchers: string[]): string =>
  `${sumBy(labels, rate(`${name}_sum`, ...matchers))} / ${sumBy(labels, rate(`${name}_count`, ...matchers))}`;

/** Seconds since the timestamp in a metric; no series while the metric is 0, i.e. not set. */
export const since = (name: string): string => `time() - (${rivulet(name)} > 0)`;
