// All devices of all jobs on one page: learning, availability, throughput, lag, dropped rows.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { learning } from './learning';
import { lines, number, rows } from './panels';
import { maxBy, ofProcess, ofTopic, quantile, rate, rivulet, series, since, sumBy } from './promql';

const there = {
  question: 'Are all devices up?',
  panels: [
    number({
      title: 'Reachable devices',
      description: 'Targets whose last scrape succeeded.',
      unit: units.Short,
      queries: [[`count(${rivulet('build_info')})`, 'devices']],
    }),
    number({
      title: 'Ready devices',
      description: `Devices whose group has formed and whose rows can be trained. For a reachable device that is not ready,
        \`rivulet status\` prints the reason.`,
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
      title: 'Unread records',
      description: 'Records waiting in Kafka for all devices: high watermark minus the next offset to read.',
      unit: units.Short,
      queries: [[`sum(${rivulet('kafka_processed_lag_records', ofTopic)})`, 'records']],
    }),
    number({
      title: 'Stopped partitions',
      description: 'Partitions that are no longer read. /api/v1/status of the device has the reason.',
      unit: units.Short,
      queries: [[`sum(${rivulet('kafka_stopped_partition', ofTopic)})`, 'partitions']],
      steps: [[null, 'green'], [1, 'red']],
    }),
    number({
      title: 'Unclaimed partitions',
      description: `Partitions of the job's topics that no device of the group claims: never claimed, added later, or released by a device
        that left. Their rows wait in Kafka until retention deletes them.`,
      unit: units.Short,
      queries: [[`sum(max by (job) (${rivulet('unclaimed_partitions')}))`, 'partitions']],
      steps: [[null, 'green'], [1, 'orange']],
    }),
    rows({
      title: 'Device versions',
      description: 'Version, model and job of each device. All devices of a job should run the same version.',
      unit: units.Short,
      width: 12,
      queries: [
        [
          `${rivulet('build_info')} * on (job, instance) group_left (device, model, rivulet_job) ${rivulet('device_info')}`,
          '{{instance}}',
        ],
      ],
      hide: ['Value'],
      rename: { rivulet_job: 'Rivulet job', job: 'Prometheus job' },
    }),
    rows({
      title: 'Alerts',
      description: 'Pending and firing alerts of dashboards/prometheus/alerts.yaml. The value is always 1.',
      unit: units.Short,
      width: 12,
      queries: [[series('ALERTS', 'alertname=~"Rivulet.+"'), '{{alertname}}']],
      mayBeEmpty: 'no alert is pending or firing, or the rules are not loaded.',
    }),
  ],
};

const fast = {
  question: 'How fast, and which device lags?',
  panels: [
    lines({
      leadsToNode: true,
      title: 'Rows trained per second, by device',
      description: "Rows whose gradient entered the agreed state. A device's rate follows its stream.",
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance', rate('rows_trained_total')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Unread records, worst partition',
      description: 'High watermark minus the next offset to read. A line that keeps rising is a device that cannot keep up.',
      unit: units.Short,
      queries: [[maxBy('instance', rivulet('kafka_processed_lag_records', ofTopic)), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Record delay, 95th percentile',
      description: `Time from the record timestamp to the end of the round that trained it, for the oldest row of each
        batch.`,
      unit: units.Seconds,
      queries: [[quantile(0.95, 'instance', 'record_delay_seconds'), '{{instance}}']],
    }),
  ],
};

const wrong: Row = {
  question: 'Faults (flat when healthy)',
  folded: true,
  panels: [
    lines({
      leadsToNode: true,
      title: 'Rows dropped per second, by device',
      description: 'Rows that never reached the model, without rows of another kind. The dashboard Node has the reasons.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance', rate('rows_dropped_total', 'reason!~"filtered|context"')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Back-pressure',
      description: 'Share of time in which the stream was paused because the buffer was full.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[sumBy('instance', rate('backpressure_seconds_total')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Log warnings and errors per second',
      description: 'Log lines of level warn or error.',
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
      description: 'Time since the last checkpoint was on the disk of the device.',
      unit: units.Seconds,
      queries: [[since('last_checkpoint_timestamp_seconds'), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Resident memory (RSS)',
      width: 12,
      description: `The whole process: the memory limited by device.memory, and about 170 MB of program and libraries. Devices on one
        machine share most of the latter, but RSS counts it for each.`,
      unit: units.BytesIEC,
      queries: [[ofProcess('resident_memory_bytes'), '{{instance}}']],
    }),
  ],
};

export const fleet: Frame = {
  uid: 'rivulet-fleet',
  title: 'Rivulet / Fleet',
  description: 'All devices on one page: learning, availability, throughput, lag, dropped rows.',
  rows: [learning, there, fast, safe, wrong],
};
