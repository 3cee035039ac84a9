// Every device of every job on one page: who is there, who is slow, who refuses rows.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { learning } from './learning';
import { lines, number, rows } from './panels';
import { maxBy, ofProcess, ofTopic, quantile, rate, rivulet, series, since, sumBy } from './promql';

const there = {
  question: 'Is every device there?',
  panels: [
    number({
      title: 'Devices that answer',
      description: 'Targets whose last scrape succeeded.',
      unit: units.Short,
      queries: [[`count(${rivulet('build_info')})`, 'devices']],
    }),
    number({
      title: 'Devices that are ready',
      description: `Devices whose group is formed and whose rows can be trained. Fewer than answer: \`rivulet status\` of
        the others names why.`,
      unit: units.Short,
      queries: [[`sum(${rivulet('ready')})`, 'ready']],
    }),
    number({
      title: 'Rows trained per second',
      description: 'Rows of all devices whose gradient entered the agreed state.',
      unit: units.CountsPerSecond,
      queries: [[`sum(${rate('rows_trained_total')})`, 'rows']],
    }),
    number({
      title: 'Records not read yet',
      description: 'What waits in Kafka for all devices: high watermark minus the next offset read.',
      unit: units.Short,
      queries: [[`sum(${rivulet('kafka_processed_lag_records', ofTopic)})`, 'records']],
    }),
    number({
      title: 'Stopped partitions',
      description: 'Partitions of which nothing more is read. /api/v1/status of the device gives the reason.',
      unit: units.Short,
      queries: [[`sum(${rivulet('kafka_stopped_partition', ofTopic)})`, 'partitions']],
      steps: [[null, 'green'], [1, 'red']],
    }),
    number({
      title: 'Partitions that nobody reads',
      description: `Partitions of the job's topics that no device of the group claims: from the beginning, added
        later, or left by a device that went. Their rows wait until retention takes them.`,
      unit: units.Short,
      queries: [[`sum(max by (job) (${rivulet('unclaimed_partitions')}))`, 'partitions']],
      steps: [[null, 'green'], [1, 'orange']],
    }),
    rows({
      title: 'Devices and their versions',
      description: 'Who runs what. Devices of one job should run one version.',
      unit: units.Short,
      width: 12,
      queries: [
        [
          `${rivulet('build_info')} * on (job, instance) group_left (device, model, rivulet_job) ${rivulet('device_info')}`,
          '{{instance}}',
        ],
      ],
      hide: ['Value'],
      rename: { rivulet_job: 'job of Rivulet', job: 'job of Prometheus' },
    }),
    rows({
      title: 'Alerts',
      description: 'Alerts of dashboards/prometheus/alerts.yaml that are pending or fire, 1 each.',
      unit: units.Short,
      width: 12,
      queries: [[series('ALERTS', 'alertname=~"Rivulet.+"'), '{{alertname}}']],
      mayBeEmpty: 'no alert is pending or fires, or the rules are not loaded.',
    }),
  ],
};

const fast = {
  question: 'How fast is it, and who is behind?',
  panels: [
    lines({
      leadsToNode: true,
      title: 'Rows trained per second, by device',
      description: "Rows whose gradient entered the agreed state. A device's share follows its stream.",
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance', rate('rows_trained_total')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Records not read yet, worst partition',
      description: 'High watermark minus the next offset read. A line that only rises is a device that cannot keep up.',
      unit: units.Short,
      queries: [[maxBy('instance', rivulet('kafka_processed_lag_records', ofTopic)), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Record delay, 95th percentile',
      description: `From the timestamp of a record to the end of the round that trained it, of the oldest row of each
        batch.`,
      unit: units.Seconds,
      queries: [[quantile(0.95, 'instance', 'record_delay_seconds'), '{{instance}}']],
    }),
  ],
};

const wrong: Row = {
  question: 'What goes wrong? Flat while all is well',
  folded: true,
  panels: [
    lines({
      leadsToNode: true,
      title: 'Rows dropped per second, by device',
      description: 'Rows that never reached the model, for any reason but that they are of another kind; the dashboard Node has the reasons.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance', rate('rows_dropped_total', 'reason!~"filtered|context"')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Back-pressure',
      description: 'Share of the time in which the buffer was full and the stream waited.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[sumBy('instance', rate('backpressure_seconds_total')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Warnings and errors in the log, per second',
      description: 'Lines of level warn or error. The logs themselves are where the device writes them.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance, level', rate('log_messages_total', 'level=~"warn|error"')), '{{instance}} {{level}}']],
    }),
  ],
};

const safe = {
  question: 'Is it safe?',
  panels: [
    lines({
      leadsToNode: true,
      title: 'Age of the last checkpoint',
      width: 12,
      description: 'Since the last saved state was on the disk of the device.',
      unit: units.Seconds,
      queries: [[since('last_checkpoint_timestamp_seconds'), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Resident memory (RSS)',
      width: 12,
      description: `Of the whole process: what device.memory caps, and about 170 MB of program and libraries. Devices of one machine share most of
        those, and RSS counts them in each.`,
      unit: units.BytesIEC,
      queries: [[ofProcess('resident_memory_bytes'), '{{instance}}']],
    }),
  ],
};

export const fleet: Frame = {
  uid: 'rivulet-fleet',
  title: 'Rivulet / Fleet',
  description: 'Every device on one page: does it learn, who is there, how fast it is, what is refused.',
  rows: [learning, there, fast, safe, wrong],
};
