// How the devices of a job train one model: rounds, schedule, batches, weights, waiting time, bytes.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { learning } from './learning';
import { lines, number, rows } from './panels';
import { increase, maxBy, mean, ofTopic, quantile, rate, rivulet, since, sumBy } from './promql';

const whole = {
  question: 'Group complete?',
  panels: [
    number({
      title: 'Devices in the view',
      description: 'Minimum over the devices of the job: 0 while any of them waits for the group to form.',
      unit: units.Short,
      queries: [[`min by (job) (${rivulet('collective_world_size')})`, '{{job}}']],
      steps: [[null, 'orange'], [1, 'green']],
    }),
    number({
      title: 'Views per hour',
      description: `Views of the last hour: the group re-forms whenever a device joins, leaves or is lost. Maximum over the
        devices.`,
      unit: units.Short,
      queries: [[`max by (job) (changes(${rivulet('collective_view')}[1h]))`, '{{job}}']],
      steps: [[null, 'green'], [3, 'orange']],
    }),
    number({
      title: 'Since last step',
      description: 'Time since the last applied round: maximum over the devices.',
      unit: units.Seconds,
      queries: [[maxBy('job', since('last_step_timestamp_seconds')), '{{job}}']],
      steps: [[null, 'green'], [60, 'orange'], [300, 'red']],
    }),
    rows({
      title: 'Members',
      description: 'Rank of each device in its view. Ranks follow the order of device ids and have no other meaning.',
      unit: units.Short,
      width: 12,
      height: 4,
      queries: [
        [
          `${rivulet('collective_rank')} * on (job, instance) group_left (device, rivulet_job) ${rivulet('device_info')}`,
          '{{device}}',
        ],
      ],
      rename: { Value: 'rank', rivulet_job: 'Rivulet job', job: 'Prometheus job' },
    }),
    lines({
      title: 'Size of the group',
      width: 6,
      description: `Devices that train together: maximum over the devices. Below min (job.devices) the group pauses; wanted is the usual
        number; above max further devices wait. All three are equal if the size is fixed.`,
      unit: units.Short,
      queries: [
        [maxBy('job', rivulet('collective_world_size')), 'present {{job}}'],
        [maxBy('job, size', rivulet('job_devices')), '{{size}} {{job}}'],
      ],
    }),
    lines({
      title: 'Changes of the group, by reason',
      width: 6,
      description: `Views that ended while the group went on: maximum over the devices. lost: a member did not answer; left: it was
        stopped; joined: devices joined; left_out: the others went on without this device; wrong: messages or states differed;
        rolled_back: the model had diverged; not_connected: the devices of a view could not be connected.`,
      unit: units.Short,
      queries: [[maxBy('job, reason', increase('collective_view_changes_total')), '{{reason}} {{job}}']],
    }),
    lines({
      title: 'Time without a step, at changes',
      width: 6,
      description: `Mean from the last step of a view to the first of the next, by device. It includes the time in which the group paused,
        or had no rows.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'collective_view_gap_seconds'), '{{instance}}']],
      mayBeEmpty: 'no view has changed.',
    }),
    lines({
      title: 'Waits for the group',
      width: 6,
      description: `Devices outside a view, by condition. joining: the group trains, and takes it in soon, or when it has a place;
        cooling_down: it was lost again and again, and must wait; paused: the group has fewer devices than min; forming: all others.`,
      unit: units.Short,
      max: 1,
      queries: [
        [
          maxBy('instance, condition', rivulet('health_condition', 'condition=~"forming|joining|cooling_down|paused"')),
          '{{condition}} {{instance}}',
        ],
      ],
    }),
  ],
};

const rounds = {
  question: 'Do rounds succeed?',
  panels: [
    lines({
      title: 'Rounds per second, by result',
      width: 12,
      description: `By result. applied: the group made a step; idle: no device had rows; deferred: the plan waits for more rows; skipped:
        the sum was not finite, or it is a dry run; local_step: a local step of one device.`,
      unit: units.OpsPerSecond,
      queries: [[maxBy('job, result', rate('train_steps_total')), '{{result}} {{job}}']],
    }),
    lines({
      title: 'Round time',
      width: 12,
      description: `Time from the end of the previous round to the end of this one. The percentile is coarse, because the buckets of its
        histogram are wide (0.5, 1, 2.5, 6, 15 s).`,
      unit: units.Seconds,
      queries: [
        [mean('instance', 'step_duration_seconds', 'phase="total"'), 'mean {{instance}}'],
        [quantile(0.95, 'instance', 'step_duration_seconds', 'phase="total"'), 'p95 {{instance}}'],
      ],
    }),
    lines({
      title: 'Exchange time, 95th percentile',
      width: 12,
      description: `By operation. Time from this device's facts to the end of the round, including the wait for
        peers.`,
      unit: units.Seconds,
      queries: [[quantile(0.95, 'instance, op', 'collective_duration_seconds'), '{{op}} {{instance}}']],
    }),
    lines({
      title: 'Exchanges per second',
      width: 12,
      description: `By operation and result. round: facts and payloads of one round; if it failed, a peer was lost or late and the group
        re-forms. state: the state from which a view starts. early_payload: speculative contributions, sent with the facts: used
        ones save one message delay, wasted ones only cost bytes.`,
      unit: units.OpsPerSecond,
      queries: [[sumBy('instance, op, result', rate('collective_operations_total')), '{{op}} {{result}} {{instance}}']],
    }),
  ],
};

const weights = {
  question: 'How many rows per device?',
  panels: [
    lines({
      title: 'Rows per batch, by device',
      description: 'Mean number of rows per gradient. batch.policy determines it.',
      unit: units.Short,
      queries: [[mean('instance', 'batch_rows'), '{{instance}}']],
    }),
    lines({
      title: 'Weight, by device',
      description: "The device's share of the group's trained rows: the weight of its gradient.",
      unit: units.PercentUnit,
      stacked: true,
      max: 1,
      queries: [
        [
          [
            sumBy('job, instance', rate('rows_trained_total')),
            sumBy('job', rate('rows_trained_total')),
          ].join(' / on (job) group_left () '),
          '{{instance}}',
        ],
      ],
    }),
    lines({
      title: 'Offsets processed, by partition',
      description: 'Next offset of the agreed state minus the offset at the start of the run. The ledger covers every row in between.',
      unit: units.Short,
      queries: [
        [
          ['next', 'start']
            .map((at) => maxBy('topic, partition', rivulet('ledger_offset', ofTopic, `at="${at}"`)))
            .join(' - '),
          '{{topic}}:{{partition}}',
        ],
      ],
    }),
  ],
};

const waiting = {
  question: 'Who waits for whom?',
  panels: [
    lines({
      title: 'Time from own facts to round end',
      description: `Mean per round. A round ends on all devices at once, so the lowest line is the device that enters last: the
        others wait for it.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="sync"'), '{{instance}}']],
    }),
    lines({
      title: 'Gradient time',
      description: `Mean per round. A device far above the others delays them: use smaller batches (batch.max) or a
        faster machine.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="compute"'), '{{instance}}']],
    }),
    lines({
      title: 'Time until round entry',
      description: `Mean time from the end of the previous round until the device has its rows or the tick ends. If it is high on
        all devices, the group waits for rows, not for a device.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="wait"'), '{{instance}}']],
    }),
  ],
};

const bytes = {
  question: 'What does synchronization cost?',
  panels: [
    lines({
      title: 'Bytes sent to peers per second',
      description: 'Total of each device.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance', rate('collective_sent_bytes_total')), '{{instance}}']],
    }),
    lines({
      title: 'Bytes received from peers per second',
      description: 'Total of each device.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance', rate('collective_received_bytes_total')), '{{instance}}']],
    }),
    lines({
      title: 'Bytes sent, of the rows\' bytes',
      description: `Bytes sent to peers as a share of the bytes of the records whose rows were trained, for the job and for each device.
        Above 100 %, sending the rows to one server would cost less: compress more (compression.policy), or synchronize less
        often (sync.policy).`,
      unit: units.PercentUnit,
      queries: [
        [
          [
            sumBy('job', rate('collective_sent_bytes_total')),
            sumBy('job', rate('record_bytes_trained_total')),
          ].join(' / '),
          '{{job}}, all devices',
        ],
        [
          [
            sumBy('instance', rate('collective_sent_bytes_total')),
            sumBy('instance', rate('record_bytes_trained_total')),
          ].join(' / '),
          '{{instance}}',
        ],
      ],
    }),
    lines({
      title: 'Bytes sent to peers, by purpose',
      description: `All devices. facts: facts, and everything sent in the same message; contributions: gradients or deltas; state: the
        agreed state, sent to joining devices; rows: injected rows.`,
      unit: units.BytesPerSecondIEC,
      stacked: true,
      queries: [[sumBy('job, traffic', rate('sync_sent_bytes_total')), '{{traffic}} {{job}}']],
    }),
    lines({
      title: 'Bytes of compressed contributions, by part',
      description: `All devices. Each contribution is counted once, regardless of the number of peers. values: elements and their scales;
        positions: their indices, and unused space.`,
      unit: units.BytesPerSecondIEC,
      stacked: true,
      queries: [[sumBy('job, part', rate('sync_slot_bytes_total')), '{{part}} {{job}}']],
    }),
    lines({
      title: 'Bytes sent per round',
      description: 'Facts and payloads, to all peers.',
      unit: units.BytesIEC,
      queries: [
        [
          [
            sumBy('instance', rate('collective_sent_bytes_total')),
            sumBy('instance', rate('collective_operations_total', 'op="round"')),
          ].join(' / '),
          '{{instance}}',
        ],
      ],
    }),
    lines({
      title: 'Residual norm',
      width: 24,
      height: 6,
      description: `L2 norm of the residual: the part of a device's contributions that compression has left out so far; 0 without
        compression. If it grows indefinitely, the keep ratio is too small. lost: residuals dropped with abandoned states.`,
      unit: units.Short,
      queries: [
        [rivulet('residual_norm'), '{{instance}}'],
        [sumBy('instance', increase('residual_lost_norm_total')), '{{instance}}, lost'],
      ],
    }),
  ],
};

const choice = {
  question: 'How does it synchronize?',
  panels: [
    lines({
      title: 'Local steps per synchronization',
      description: `Planned local steps of each device until the next synchronization. 0: the group synchronizes gradients after
        each batch.`,
      unit: units.Short,
      queries: [[maxBy('job', rivulet('sync_local_steps')), '{{job}}']],
    }),
    lines({
      title: 'Keep ratio',
      description: 'Share of the parameters that the next contributions contain. 1: all of them.',
      unit: units.PercentUnit,
      queries: [[maxBy('job', rivulet('sync_keep_ratio')), '{{job}}']],
    }),
    lines({
      title: 'Similarity of streams',
      description: `Coherence, measured by policy auto. About 1 if all streams move the model in the same direction, apart from the noise
        of batches. Below 0.6 the streams differ, and the group synchronizes more often.`,
      unit: units.Short,
      queries: [[maxBy('job', rivulet('sync_figure', 'figure="coherence"')), '{{job}}']],
    }),
    lines({
      title: 'Label skew',
      description: `Mean Jensen-Shannon distance of the devices' labels to those of the group: 0 for equal, 1 for disjoint. If it is large,
        inject.policy auto adds injected rows to the batches.`,
      unit: units.Short,
      max: 1,
      queries: [[maxBy('job', rivulet('sync_figure', 'figure="skew"')), '{{job}}']],
    }),
    lines({
      title: 'Injected rows per second',
      description: `Rows of other devices that were added to batches (inject.policy). Only their owners count them as trained. Their bytes
        are in the panel of bytes by purpose, under rows.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('job', rate('injected_rows_trained_total')), '{{job}}']],
    }),
    lines({
      title: 'Exchange time, expected and measured',
      description: `Measured by policy auto, without the wait for late devices. The expected time is predicted from exchanges of other
        sizes. wait: time that waiting for the slowest device costs devices that could compute.`,
      unit: units.Seconds,
      queries: [
        [maxBy('job', rivulet('sync_figure', 'figure="expected_exchange_seconds"')), 'expected {{job}}'],
        [maxBy('job', rivulet('sync_figure', 'figure="exchange_seconds"')), 'measured {{job}}'],
        [maxBy('job', rivulet('sync_figure', 'figure="wait_seconds"')), 'wait {{job}}'],
      ],
    }),
  ],
};

const shares = {
  question: 'Who contributes, and who delays?',
  panels: [
    lines({
      title: 'Weight in last step',
      description: "Weight of a device's contribution: its share of the rows of the round.",
      unit: units.PercentUnit,
      max: 1,
      queries: [[rivulet('collective_weight_ratio'), '{{instance}}']],
    }),
    lines({
      title: 'Rounds delayed per second',
      description: 'Rounds in which this device was ready last: the group waited for its rows or its gradient.',
      unit: units.CountsPerSecond,
      queries: [[rate('collective_rounds_last_total'), '{{instance}}']],
    }),
    lines({
      title: 'Lead over the last device',
      description: 'Time by which this device was ready before the slowest one in the last round. 0: it was the slowest.',
      unit: units.Seconds,
      queries: [[rivulet('collective_spare_seconds'), '{{instance}}']],
    }),
  ],
};

const memory: Row = {
  folded: true,
  question: 'How much memory is planned?',
  panels: [
    lines({
      title: 'Planned memory, by part',
      description: `Planned maximum of each part, on the device with the largest value. \`rivulet validate\` lists the keys that
        reduce it.`,
      unit: units.BytesIEC,
      width: 16,
      stacked: true,
      queries: [[maxBy('part', rivulet('memory_planned_bytes')), '{{part}}']],
    }),
    lines({
      title: 'Planned share of the cap',
      description: 'Sum of the parts divided by device.memory. Above 1 a device does not start.',
      unit: units.PercentUnit,
      max: 1,
      queries: [
        [
          ['planned', 'cap'].map((what) => sumBy('instance', rivulet(`memory_${what}_bytes`))).join(' / '),
          '{{instance}}',
        ],
      ],
    }),
  ],
};

const wrong: Row = {
  question: 'Faults (flat when healthy)',
  folded: true,
  panels: [
    lines({
      title: 'View number and size',
      width: 12,
      description: `The number of the view increases by one each time the group forms; in between, its size is 0. All devices show
        the same values, with a short delay at a change.`,
      unit: units.Short,
      queries: [
        [rivulet('collective_view'), 'view {{instance}}'],
        [rivulet('collective_world_size'), 'devices {{instance}}'],
      ],
    }),
    lines({
      title: 'Rejected control records',
      width: 12,
      description: `Records of the control topic, by reason. refused: a condition of the record is not met; foreign: a record of another
        job; impossible, unreadable: another program writes to the topic. Repeated records and records of ended sessions are
        normal and not shown.`,
      unit: units.Short,
      queries: [
        [
          maxBy('job, reason', increase('control_records_ignored_total', 'reason=~"refused|foreign|impossible|unreadable"')),
          '{{reason}} {{job}}',
        ],
      ],
    }),
  ],
};

export const synchronization: Frame = {
  uid: 'rivulet-synchronization',
  title: 'Rivulet / Synchronization',
  description: 'How the devices of a job train one model: rounds, schedule, batches, weights, waiting time, bytes.',
  rows: [learning, whole, rounds, choice, weights, shares, waiting, bytes, wrong, memory],
};
