// One device or several: stream, pipeline, learning, checkpoints, process.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { learning } from './learning';
import { heat, lines, number, rows } from './panels';
import { increase, maxBy, mean, ofProcess, ofTopic, quantile, rate, rateOfProcess, rivulet, since, sumBy } from './promql';

const working = {
  question: 'Is it working?',
  panels: [
    number({
      title: 'Group',
      description: 'Whether the group has formed and rows can be trained.',
      unit: units.Short,
      queries: [[rivulet('ready'), '{{instance}}']],
      words: { '0': 'forming', '1': 'formed' },
      steps: [[null, 'orange'], [1, 'green']],
    }),
    number({
      title: 'Uptime',
      description: 'Time since the process started.',
      unit: units.Seconds,
      queries: [[`time() - (${ofProcess('start_time_seconds')})`, '{{instance}}']],
    }),
    number({
      title: 'Since last step',
      description: 'Time since the last applied round. It grows while no device of the group has rows, or while the group forms.',
      unit: units.Seconds,
      queries: [[since('last_step_timestamp_seconds'), '{{instance}}']],
      steps: [[null, 'green'], [60, 'orange'], [300, 'red']],
    }),
    number({
      title: 'Since last checkpoint',
      description: 'Time since the last checkpoint was on the disk of this device.',
      unit: units.Seconds,
      queries: [[since('last_checkpoint_timestamp_seconds'), '{{instance}}']],
      steps: [[null, 'green'], [300, 'orange'], [900, 'red']],
    }),
    number({
      title: 'Partitions',
      description: 'Partitions assigned to this device.',
      unit: units.Short,
      queries: [[sumBy('instance', rivulet('kafka_assigned_partitions', ofTopic)), '{{instance}}']],
    }),
    number({
      title: 'Devices in the view',
      description: 'Devices that train together; 0 while the group forms.',
      unit: units.Short,
      queries: [[rivulet('collective_world_size'), '{{instance}}']],
      steps: [[null, 'orange'], [1, 'green']],
    }),
  ],
};

const toldByClient = 'the client has not reported yet; it reports every two seconds (statistics.interval.ms, maximum 5000).';

const stream = {
  question: 'Stream: does training keep up?',
  panels: [
    lines({
      title: 'Rows per second: arrived, trained',
      description: `Rows added to the buffer, rows whose gradient entered the agreed state, and the measured rate of the
        stream.`,
      unit: units.CountsPerSecond,
      queries: [
        [sumBy('instance', rate('rows_consumed_total')), 'arrived {{instance}}'],
        [sumBy('instance', rate('rows_trained_total')), 'trained {{instance}}'],
        [rivulet('stream_rows_per_second'), 'measured {{instance}}'],
      ],
    }),
    lines({
      title: 'Unread records, by partition',
      description: 'High watermark minus the next offset to read.',
      unit: units.Short,
      queries: [[rivulet('kafka_processed_lag_records', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
    }),
    lines({
      title: 'Uncommitted records, by partition',
      description: `High watermark minus the last committed offset: the lag of the consumer group in Kafka's tools. Only offsets covered by
        a checkpoint are committed. The value therefore falls with each checkpoint, and is never below the unread records.`,
      unit: units.Short,
      queries: [[rivulet('kafka_consumer_lag_records', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
      mayBeEmpty: 'this process has not committed offsets yet.',
    }),
    lines({
      title: 'Record delay',
      description: `Time from the record timestamp to the end of the round that trained it, for the oldest row of each
        batch.`,
      unit: units.Seconds,
      queries: [0.5, 0.95, 0.99].map((q) => [
        quantile(q, 'instance', 'record_delay_seconds'),
        `p${Math.round(q * 100)} {{instance}}`,
      ]),
    }),
    heat({
      title: 'Record delay, distribution',
      description: 'Number of batches, by the delay of their oldest row.',
      unit: units.Seconds,
      queries: [[sumBy('le', increase('record_delay_seconds_bucket')), '{{le}}']],
    }),
    lines({
      title: 'Records per second',
      description: 'Kafka messages received. A message may contain many rows.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance, topic', rate('kafka_records_consumed_total', ofTopic)), '{{instance}} {{topic}}']],
    }),
    lines({
      title: 'Bytes per second',
      description: 'Bytes of record values received.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance, topic', rate('kafka_consumed_bytes_total', ofTopic)), '{{instance}} {{topic}}']],
    }),
    lines({
      title: 'Broker latency',
      description: `Mean response time, and mean throttling delay by broker quotas. A fetch without new records waits at the broker for
        fetch.wait.max.ms (half a second), so half a second does not indicate a slow network.`,
      unit: units.Seconds,
      queries: [
        [rivulet('kafka_broker_rtt_seconds'), 'broker {{broker}} {{instance}}'],
        [rivulet('kafka_throttle_seconds'), 'throttled {{instance}}'],
      ],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Prefetched records',
      description: `Records fetched by the client and not decoded yet. Near zero while records wait in Kafka: the network or the broker is
        the bottleneck. High while the buffer is full: the device is.`,
      unit: units.Short,
      queries: [[rivulet('kafka_fetch_queue_records'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Prefetched bytes',
      description: 'Bytes of the prefetched records, limited by queued.max.messages.kbytes.',
      unit: units.BytesIEC,
      queries: [[rivulet('kafka_fetch_queue_bytes'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Offset commits per second',
      description: `Offsets covered by a checkpoint are committed, so that Kafka's tools show the progress of the job. A run resumes
        from its checkpoints, not from committed offsets.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('result', rate('kafka_offset_commits_total')), '{{result}}']],
    }),
    number({
      title: 'Since last commit',
      description: 'Time since the last offset commit.',
      unit: units.Seconds,
      width: 8,
      height: 8,
      queries: [[since('kafka_last_commit_timestamp_seconds'), '{{instance}}']],
      mayBeEmpty: 'nothing has been committed yet; the first commit follows the first committed checkpoint.',
    }),
    rows({
      title: 'Fate of rows, by partition',
      description: `The ledger of the agreed state, as printed by \`rivulet ledger show\`: rows trained, rows dropped by reason, and
        offsets without a row (hole).`,
      unit: units.Short,
      width: 24,
      queries: [[`sum by (topic, partition, fate) (${rivulet('ledger_rows', ofTopic)}) > 0`, '{{topic}}:{{partition}} {{fate}}']],
    }),
  ],
};

const pipeline = {
  question: 'Pipeline: where does the time go?',
  panels: [
    lines({
      title: 'Buffer',
      description: 'Share of slots with waiting rows. A full buffer means that rows arrive faster than they are trained.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[`${rivulet('buffer_rows')} / ${rivulet('buffer_capacity_rows')}`, '{{instance}}']],
    }),
    lines({
      title: 'Round time, by phase',
      width: 16,
      description: `Mean per round of the selected devices. wait: until enough rows arrive or the tick ends; compute: the
        gradient; sync: the exchange with peers, including the wait for them.`,
      unit: units.Seconds,
      stacked: true,
      queries: [[mean('phase', 'step_duration_seconds', 'phase=~"wait|compute|sync"'), '{{phase}}']],
    }),
    heat({
      title: 'Rows per batch, distribution',
      description: 'Number of batches, by size. With batch.policy unified or stream the size follows the stream: rate × tick.',
      unit: units.Short,
      queries: [[sumBy('le', increase('batch_rows_bucket')), '{{le}}']],
    }),
    lines({
      title: 'Records decoded per second',
      description: 'By format and result.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('format, result', rate('decode_records_total')), '{{format}} {{result}}']],
    }),
    lines({
      title: 'Decode time',
      description: `Time to decode the records of one poll of the source, by format: mean and 95th percentile. Decoding takes processor
        time from training.`,
      unit: units.Seconds,
      queries: [
        [mean('instance, format', 'decode_duration_seconds'), 'mean {{format}} {{instance}}'],
        [quantile(0.95, 'instance, format', 'decode_duration_seconds'), 'p95 {{format}} {{instance}}'],
      ],
    }),
  ],
};

const steps = {
  question: 'How large are its steps?',
  panels: [
    lines({
      title: 'Gradient norm',
      description: 'L2 norm of the agreed gradient before clipping. Unbounded growth precedes a non-finite loss.',
      unit: units.Short,
      logarithmic: true,
      queries: [[rivulet('grad_norm'), '{{instance}}']],
    }),
    lines({
      title: 'Learning rate',
      description: 'Learning rate of the last step.',
      unit: units.ScientificNotation,
      queries: [[rivulet('learning_rate'), '{{instance}}']],
    }),
    number({
      title: 'Parameters',
      description: 'Trainable parameters of the model.',
      unit: units.Short,
      height: 8,
      width: 8,
      queries: [[rivulet('model_parameters'), '{{instance}}']],
    }),
  ],
};

const saved = {
  question: 'Is it saved?',
  panels: [
    lines({
      title: 'Checkpoints per second',
      description: `By result. skipped: the previous checkpoint was still being written; failed: a disk error, see the
        log.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('result', rate('checkpoints_total')), '{{result}}']],
    }),
    lines({
      title: 'Checkpoint time',
      description: 'Mean time from the copy of the state to the synced file. Training continues during it.',
      unit: units.Seconds,
      queries: [[mean('instance', 'checkpoint_duration_seconds'), '{{instance}}']],
      mayBeEmpty: 'no checkpoint was written in this time range.',
    }),
    lines({
      title: 'Checkpoint size',
      description: 'Size of the last checkpoint. The disk holds checkpoint.keep of them, and those that the group still needs.',
      unit: units.BytesIEC,
      queries: [[rivulet('checkpoint_size_bytes'), '{{instance}}']],
    }),
  ],
};

const process = {
  question: 'What does the process use?',
  panels: [
    lines({
      title: 'CPU cores',
      description: 'CPU seconds per second: 1 is one busy core.',
      unit: units.Short,
      queries: [[rateOfProcess('cpu_seconds_total'), '{{instance}}']],
    }),
    lines({
      title: 'Memory',
      description: `Resident and mapped memory, and the cap (device.memory). Resident memory also contains about 170 MB of program
        and libraries, to which the cap does not apply.`,
      unit: units.BytesIEC,
      logarithmic: true,
      queries: [
        [ofProcess('resident_memory_bytes'), 'resident {{instance}}'],
        [ofProcess('virtual_memory_bytes'), 'mapped {{instance}}'],
        [rivulet('memory_cap_bytes'), 'cap {{instance}}'],
      ],
    }),
    lines({
      title: 'Open files and threads',
      description: 'Open file descriptors, sockets included, with their limit; and threads.',
      unit: units.Short,
      logarithmic: true,
      queries: [
        [ofProcess('open_fds'), 'files {{instance}}'],
        [ofProcess('max_fds'), 'file limit {{instance}}'],
        [ofProcess('threads'), 'threads {{instance}}'],
      ],
    }),
    lines({
      title: 'Log lines per second',
      description: 'Lines written, by level.',
      unit: units.CountsPerSecond,
      width: 24,
      height: 6,
      queries: [[sumBy('level', rate('log_messages_total')), '{{level}}']],
    }),
  ],
};

const wrong: Row = {
  question: 'Faults (flat when healthy)',
  folded: true,
  panels: [
    lines({
      title: 'Paused or stopped partitions',
      description: `Paused: the buffer is full, and reading resumes automatically. Stopped: the partition is not read until
        an operator acts; /api/v1/status has the reason.`,
      unit: units.Short,
      queries: [
        [rivulet('kafka_paused_partitions'), 'paused {{instance}}'],
        [sumBy('instance', rivulet('kafka_stopped_partition', ofTopic)), 'stopped {{instance}}'],
      ],
    }),
    lines({
      title: 'Offsets deleted before they were read',
      description: `Per second, skipped because of source.on_gap = "count". Kafka's retention was shorter than the lag of this
        device.`,
      unit: units.CountsPerSecond,
      queries: [[rate('kafka_gap_records_total', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
    }),
    lines({
      title: 'Back-pressure',
      description: 'Share of time with partitions paused, by stage.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[sumBy('instance, stage', rate('backpressure_seconds_total')), '{{stage}} {{instance}}']],
    }),
    lines({
      title: 'Rows dropped per second, by reason',
      width: 16,
      description: `Rows that never reached the model. malformed, missing_field, wrong_shape, wrong_type: the format differs from
        the configuration; nonfinite_batch: the model has diverged; truncated: more rows arrived than were
        trained (source.retention); expired: a label did not arrive in time. filtered (excluded by decode.*.where)
        and context (needed only by other rows) are not faults.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('reason', rate('rows_dropped_total')), '{{reason}}']],
    }),
    lines({
      title: 'Kafka client errors per second',
      description: `By kind. transport: a broker is unreachable; auth: wrong credentials or missing rights; fetch, commit: rejected
        by the broker; fatal: the client has stopped.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('kind', rate('kafka_errors_total')), '{{kind}}']],
    }),
    lines({
      title: 'Missing values per second, by feature',
      width: 24,
      description: `Values of optional features that are missing in records, and are replaced as set by decode.*.fill. Only this
        panel shows that a sensor has fallen silent.`,
      mayBeEmpty: 'the format is raw, without missing values.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('feature', rate('feature_missing_total')), '{{feature}}']],
    }),
    lines({
      title: 'Outliers per second, by feature',
      width: 8,
      description: `Values clipped because they are more than normalize.limit deviations from the mean. Causes: an error code sent as a
        value, or a failing sensor.`,
      mayBeEmpty: 'features are not normalized.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('feature', rate('feature_outliers_total')), '{{feature}}']],
    }),
    lines({
      title: 'Shift of feature means',
      width: 8,
      description: `Distance between the means of the last 10 000 and the last 200 rows, in deviations. Above 3 the feature has moved:
        a season, another unit, a broken sensor.`,
      mayBeEmpty: 'features are not normalized.',
      unit: units.Short,
      queries: [[maxBy('feature', rivulet('feature_distance_ratio')), '{{feature}}']],
    }),
    lines({
      title: 'Stream changes per hour',
      width: 8,
      description: `Features that moved or became constant, and rises of the loss on a device's own rows. After a change, the means adapt
        faster for a while, and the group synchronizes more often. Diverged: the group rolled back to a good checkpoint.`,
      unit: units.Short,
      queries: [
        [`3600 * ${sumBy('instance', rate('stream_changes_total'))}`, '{{instance}}'],
        [`3600 * ${sumBy('instance', rate('divergences_total'))}`, '{{instance}}, diverged'],
      ],
    }),
    lines({
      title: 'Rejected batches per second',
      width: 12,
      description: `Batches whose loss, gradient or delta was not finite, too large, or exploding. local: a batch of this device, or its
        local steps since the last synchronization; agreed: the sum of the group.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('where', rate('nonfinite_batches_total')), '{{where}}']],
    }),
    lines({
      title: 'Connected brokers',
      width: 12,
      description: `Brokers with an established connection to the client. It needs only the leaders of its partitions. 0: no records
        arrive.`,
      unit: units.Short,
      queries: [[rivulet('kafka_brokers_up'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
  ],
};

export const node: Frame = {
  uid: 'rivulet-node',
  title: 'Rivulet / Node',
  description: 'One device or several: learning, stream, pipeline, checkpoints, process.',
  rows: [learning, working, stream, pipeline, steps, saved, wrong, process],
};
