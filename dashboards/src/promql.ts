// Expressions over Rivulet's metrics, cut down to what the dashboard's variables choose.

/** Matchers that every query has. */
const chosen = ['job=~"$job"', 'instance=~"$instance"'];

/** Of metrics that have the label `topic`. */
export const ofTopic = 'topic=~"$topic"';

/** A series by its full name: series("up"). */
export const series = (name: string, ...matchers: string[]): string =>
  `${name}{${[...chosen, ...matchers].join(', ')}}`;

/** A metric of core/metrics.def, without its prefix: rivulet("ready"). */
export const rivulet = (name: string, ...matchers: string[]): string => series(`rivulet_${name}`, ...matchers);

const over = (call: string, name: string, matchers: string[]): string =>
  `${call}(${rivulet(name, ...matchers)}[$__rate_interval])`;

/** What every process exports, of Rivulet's alone: "all jobs" are also those of other programs. */
const ours = ` and on (job, instance) ${rivulet('build_info')}`;
export const ofProcess = (name: string): string => series(`process_${name}`) + ours;
export const rateOfProcess = (name: string): string => `rate(${series(`process_${name}`)}[$__rate_interval])${ours}`;

/** Per second. */
export const rate = (name: string, ...matchers: string[]): string => over('rate', name, matchers);
/** Within one step of the picture. */
export const increase = (name: string, ...matchers: string[]): string => over('increase', name, matchers);

export const sumBy = (labels: string, expr: string): string => `sum by (${labels}) (${expr})`;
export const minBy = (labels: string, expr: string): string => `min by (${labels}) (${expr})`;
export const maxBy = (labels: string, expr: string): string => `max by (${labels}) (${expr})`;

/** Of a histogram, over the devices that share `labels`. */
export const quantile = (q: number, labels: string, name: string, ...matchers: string[]): string =>
  `histogram_quantile(${q}, sum by (${labels ? `${labels}, ` : ''}le) (${rate(`${name}_bucket`, ...matchers)}))`;

/** Of a histogram: sum by sum. */
export const mean = (labels: string, name: string, ...matchers: string[]): string =>
  `${sumBy(labels, rate(`${name}_sum`, ...matchers))} / ${sumBy(labels, rate(`${name}_count`, ...matchers))}`;

/** Seconds since a time that a metric says; a metric that says 0 has not been set yet. */
export const since = (name: string): string => `time() - (${rivulet(name)} > 0)`;
