// One device, or a few beside each other: its stream, its pipeline, its model, its process.
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
      description: 'Whether the group is formed and rows can be trained.',
      unit: units.Short,
      queries: [[rivulet('ready'), '{{instance}}']],
      words: { '0': 'forming', '1': 'formed' },
      steps: [[null, 'orange'], [1, 'green']],
    }),
    number({
      title: 'Running for',
      description: 'Since the process was started.',
      unit: units.Seconds,
      queries: [[`time() - (${ofProcess('start_time_seconds')})`, '{{instance}}']],
    }),
    number({
      title: 'Since the last step',
      description: 'Since a round was applied. It grows while no device of the group has rows, or while the group forms.',
      unit: units.Seconds,
      queries: [[since('last_step_timestamp_seconds'), '{{instance}}']],
      steps: [[null, 'green'], [60, 'orange'], [300, 'red']],
    }),
    number({
      title: 'Since the last checkpoint',
      description: 'Since the last saved state was on the disk of this device.',
      unit: units.Seconds,
      queries: [[since('last_checkpoint_timestamp_seconds'), '{{instance}}']],
      steps: [[null, 'green'], [300, 'orange'], [900, 'red']],
    }),
    number({
      title: 'Partitions',
      description: 'Bound to this device.',
      unit: units.Short,
      queries: [[sumBy('instance', rivulet('kafka_assigned_partitions', ofTopic)), '{{instance}}']],
    }),
    number({
      title: 'Devices in the view',
      description: 'How many train together; 0 while the group forms.',
      unit: units.Short,
      queries: [[rivulet('collective_world_size'), '{{instance}}']],
      steps: [[null, 'orange'], [1, 'green']],
    }),
  ],
};

const toldByClient = 'the client reports this every two seconds (statistics.interval.ms, at most 5000).';

const stream = {
  question: 'The stream: what comes in, and is it kept up with?',
  panels: [
    lines({
      title: 'Rows per second: arrived, trained',
      description: `Rows put into the buffer, rows whose gradient entered the agreed state, and the measured rate
        of arrival.`,
      unit: units.CountsPerSecond,
      queries: [
        [sumBy('instance', rate('rows_consumed_total')), 'arrived {{instance}}'],
        [sumBy('instance', rate('rows_trained_total')), 'trained {{instance}}'],
        [rivulet('stream_rows_per_second'), 'measured {{instance}}'],
      ],
    }),
    lines({
      title: 'Records not read yet, by partition',
      description: 'High watermark minus the next offset read.',
      unit: units.Short,
      queries: [[rivulet('kafka_processed_lag_records', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
    }),
    lines({
      title: 'Records not committed yet, by partition',
      description: `High watermark minus the offset committed last: what the tools of Kafka call the lag of the group. Offsets are
        committed for what a saved state covers, so this falls with every checkpoint and is never below what is not read.`,
      unit: units.Short,
      queries: [[rivulet('kafka_consumer_lag_records', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
      mayBeEmpty: 'nothing has been committed yet since the process was started.',
    }),
    lines({
      title: 'Record delay',
      description: `From the timestamp of a record to the end of the round that trained it, of the oldest row of each
        batch.`,
      unit: units.Seconds,
      queries: [0.5, 0.95, 0.99].map((q) => [
        quantile(q, 'instance', 'record_delay_seconds'),
        `p${Math.round(q * 100)} {{instance}}`,
      ]),
    }),
    heat({
      title: 'Record delay, distribution',
      description: 'Batches by the delay of their oldest row.',
      unit: units.Seconds,
      queries: [[sumBy('le', increase('record_delay_seconds_bucket')), '{{le}}']],
    }),
    lines({
      title: 'Records per second',
      description: 'Kafka messages received. One may hold many rows.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('instance, topic', rate('kafka_records_consumed_total', ofTopic)), '{{instance}} {{topic}}']],
    }),
    lines({
      title: 'Bytes per second',
      description: 'Of the values of records.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance, topic', rate('kafka_consumed_bytes_total', ofTopic)), '{{instance}} {{topic}}']],
    }),
    lines({
      title: 'Answers of brokers',
      description: `Mean time from a request to its answer, and the mean wait that quotas of the brokers asked for. A fetch of a stream
        that has nothing new waits at the broker for fetch.wait.max.ms, half a second: that is not a slow network.`,
      unit: units.Seconds,
      queries: [
        [rivulet('kafka_broker_rtt_seconds'), 'broker {{broker}} {{instance}}'],
        [rivulet('kafka_throttle_seconds'), 'throttled {{instance}}'],
      ],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Records that the client has fetched ahead',
      description: `Fetched and not decoded yet. Near zero while rows wait in Kafka: the network or the broker is the limit; many while the
        buffer is full: the device is.`,
      unit: units.Short,
      queries: [[rivulet('kafka_fetch_queue_records'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Memory of what is fetched ahead',
      description: 'Bytes of those records; queued.max.messages.kbytes is its limit.',
      unit: units.BytesIEC,
      queries: [[rivulet('kafka_fetch_queue_bytes'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
    lines({
      title: 'Commits of offsets, per second',
      description: `Offsets are committed for what a saved state covers, so that the tools of Kafka see the job. A run
        goes on from its states, not from them.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('result', rate('kafka_offset_commits_total')), '{{result}}']],
    }),
    number({
      title: 'Since the last commit',
      description: 'Since offsets were last committed.',
      unit: units.Seconds,
      width: 8,
      height: 8,
      queries: [[since('kafka_last_commit_timestamp_seconds'), '{{instance}}']],
      mayBeEmpty: 'nothing has been committed yet: it begins with the first state that enough devices have saved.',
    }),
    rows({
      title: 'What became of the rows of each partition',
      description: `In the agreed state: trained, dropped by reason, offsets without a row (hole). The ledger, as
        \`rivulet ledger show\` prints it.`,
      unit: units.Short,
      width: 24,
      queries: [[`sum by (topic, partition, fate) (${rivulet('ledger_rows', ofTopic)}) > 0`, '{{topic}}:{{partition}} {{fate}}']],
    }),
  ],
};

const pipeline = {
  question: 'The pipeline: where is time lost, and what is refused?',
  panels: [
    lines({
      title: 'Buffer',
      description: 'Share of the slots that hold waiting rows. Full: rows arrive faster than they are trained.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[`${rivulet('buffer_rows')} / ${rivulet('buffer_capacity_rows')}`, '{{instance}}']],
    }),
    lines({
      title: 'Where the time of a round goes',
      width: 16,
      description: `Mean per round, over the chosen devices. wait: until there were rows or the tick was over;
        compute: the gradient; agree: exchange with the peers, waiting for them included.`,
      unit: units.Seconds,
      stacked: true,
      queries: [[mean('phase', 'step_duration_seconds', 'phase=~"wait|compute|sync"'), '{{phase}}']],
    }),
    heat({
      title: 'Rows of a batch, distribution',
      description: 'Batches by their rows. By policy unified or stream they follow the stream: rate times tick.',
      unit: units.Short,
      queries: [[sumBy('le', increase('batch_rows_bucket')), '{{le}}']],
    }),
    lines({
      title: 'Records decoded per second',
      description: 'By format and by whether rows came of them.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('format, result', rate('decode_records_total')), '{{format}} {{result}}']],
    }),
    lines({
      title: 'Time to decode',
      description: `What one look at the source brought, by format: mean and 95th percentile. It takes processor time that training would
        have.`,
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
      title: 'Norm of the gradient',
      description: `L2 norm of the agreed gradient before clipping. One that runs away precedes a loss that is not
        finite.`,
      unit: units.Short,
      logarithmic: true,
      queries: [[rivulet('grad_norm'), '{{instance}}']],
    }),
    lines({
      title: 'Learning rate',
      description: 'Of the last step.',
      unit: units.ScientificNotation,
      queries: [[rivulet('learning_rate'), '{{instance}}']],
    }),
    number({
      title: 'Parameters',
      description: 'Trainable numbers of the model.',
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
      description: `By result. skipped: the last one was still being written when the next was due; failed: the disk, see the
        log.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('result', rate('checkpoints_total')), '{{result}}']],
    }),
    lines({
      title: 'Time of a checkpoint',
      description: 'Mean, from the copy of the state to a synced file. Training goes on meanwhile.',
      unit: units.Seconds,
      queries: [[mean('instance', 'checkpoint_duration_seconds'), '{{instance}}']],
      mayBeEmpty: 'no checkpoint was written in this time.',
    }),
    lines({
      title: 'Size of a checkpoint',
      description: 'Of the last one. checkpoint.keep of them lie on the disk, and those that the group still needs.',
      unit: units.BytesIEC,
      queries: [[rivulet('checkpoint_size_bytes'), '{{instance}}']],
    }),
  ],
};

const process = {
  question: 'What does the process take?',
  panels: [
    lines({
      title: 'Processor',
      description: 'Seconds of processor time per second: 1 is one core.',
      unit: units.Short,
      queries: [[rateOfProcess('cpu_seconds_total'), '{{instance}}']],
    }),
    lines({
      title: 'Memory',
      description: `Resident, mapped, and the cap of device.memory. Resident memory holds about 170 MB of program and
        libraries besides what is capped.`,
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
      description: 'Files: sockets too; the limit is beside them.',
      unit: units.Short,
      logarithmic: true,
      queries: [
        [ofProcess('open_fds'), 'files {{instance}}'],
        [ofProcess('max_fds'), 'limit of files {{instance}}'],
        [ofProcess('threads'), 'threads {{instance}}'],
      ],
    }),
    lines({
      title: 'Lines of the log, per second',
      description: 'By level.',
      unit: units.CountsPerSecond,
      width: 24,
      height: 6,
      queries: [[sumBy('level', rate('log_messages_total')), '{{level}}']],
    }),
  ],
};

const wrong: Row = {
  question: 'What goes wrong? Flat while all is well',
  folded: true,
  panels: [
    lines({
      title: 'Partitions paused or stopped',
      description: `Paused: the buffer is full, reading goes on by itself. Stopped: nothing more is read until
        somebody acts; /api/v1/status gives the reason.`,
      unit: units.Short,
      queries: [
        [rivulet('kafka_paused_partitions'), 'paused {{instance}}'],
        [sumBy('instance', rivulet('kafka_stopped_partition', ofTopic)), 'stopped {{instance}}'],
      ],
    }),
    lines({
      title: 'Offsets that were deleted before they were read',
      description: `Per second, gone over with source.on_gap = "count". Retention in Kafka is too short for how far
        behind this device was.`,
      unit: units.CountsPerSecond,
      queries: [[rate('kafka_gap_records_total', ofTopic), '{{instance}} {{topic}}:{{partition}}']],
    }),
    lines({
      title: 'Back-pressure',
      description: 'Share of the time in which there was no room, by stage.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[sumBy('instance, stage', rate('backpressure_seconds_total')), '{{stage}} {{instance}}']],
    }),
    lines({
      title: 'Rows dropped per second, by reason',
      width: 16,
      description: `Rows that never reached the model. malformed, missing_field, wrong_shape, wrong_type: the format
        is not what the configuration says; nonfinite_batch: the model has diverged; truncated: more came than were
        trained (source.retention); expired: a label did not come in time; filtered (of
        another kind than decode.*.where chooses) and context (of use to other rows only) are not faults.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('reason', rate('rows_dropped_total')), '{{reason}}']],
    }),
    lines({
      title: 'Errors of the Kafka client, per second',
      description: `By kind. transport: a broker cannot be reached; auth: credentials or rights; fetch, commit: the
        broker refused that; fatal: the client gave up.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('kind', rate('kafka_errors_total')), '{{kind}}']],
    }),
    lines({
      title: 'Values missing per second, by feature',
      width: 24,
      description: `What records did not have, of features that may be missing. It becomes what decode.*.fill says: a
        sensor that falls silent is seen here, and nowhere else.`,
      mayBeEmpty: 'rows are raw numbers, of which none can be missing.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('feature', rate('feature_missing_total')), '{{feature}}']],
    }),
    lines({
      title: 'Outliers per second, by feature',
      width: 8,
      description: `Values beyond normalize.limit deviations: they are clipped. A sensor that says a code for nothing, or
        is about to break.`,
      mayBeEmpty: 'features are not normalized.',
      unit: units.CountsPerSecond,
      queries: [[sumBy('feature', rate('feature_outliers_total')), '{{feature}}']],
    }),
    lines({
      title: 'Distance of features from their usual mean',
      width: 8,
      description: `From the mean of the last 10 000 rows to that of the last 200, in deviations. Above 3 the feature has moved: a
        season, another unit, a broken sensor.`,
      mayBeEmpty: 'features are not normalized.',
      unit: units.Short,
      queries: [[maxBy('feature', rivulet('feature_distance_ratio')), '{{feature}}']],
    }),
    lines({
      title: 'Changes of the stream, per hour',
      width: 8,
      description: `Features that moved, and rises of the loss on a device's own rows. Means follow faster for a while, and the
        group agrees more often. Diverged: the group went back to a good checkpoint.`,
      unit: units.Short,
      queries: [
        [`3600 * ${sumBy('instance', rate('stream_changes_total'))}`, '{{instance}}'],
        [`3600 * ${sumBy('instance', rate('divergences_total'))}`, '{{instance}}, diverged'],
      ],
    }),
    lines({
      title: 'Batches that were refused, per second',
      width: 12,
      description: `Loss, gradient or movement was not finite, too large, or had exploded. local: of this device's batch, or of
        its steps since the last agreement; agreed: of the sum of the group.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('where', rate('nonfinite_batches_total')), '{{where}}']],
    }),
    lines({
      title: 'Brokers with a connection',
      width: 12,
      description: `Brokers to which the client has a connection that stands. It needs only those that lead its partitions. 0: nothing
        comes in.`,
      unit: units.Short,
      queries: [[rivulet('kafka_brokers_up'), '{{instance}}']],
      mayBeEmpty: toldByClient,
    }),
  ],
};

export const node: Frame = {
  uid: 'rivulet-node',
  title: 'Rivulet / Node',
  description: 'One device, or a few beside each other: learning, stream, pipeline, checkpoints, process.',
  rows: [learning, working, stream, pipeline, steps, saved, wrong, process],
};
