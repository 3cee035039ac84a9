// How the devices of a job train one model: rounds, batches, weights, bytes, and who waits for whom.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { learning } from './learning';
import { lines, number, rows } from './panels';
import { increase, maxBy, mean, ofTopic, quantile, rate, rivulet, since, sumBy } from './promql';

const whole = {
  question: 'Is the group whole?',
  panels: [
    number({
      title: 'Devices in the view',
      description: 'The smallest answer of any device: 0 while one of them waits for the group to form.',
      unit: units.Short,
      queries: [[`min by (job) (${rivulet('collective_world_size')})`, '{{job}}']],
      steps: [[null, 'orange'], [1, 'green']],
    }),
    number({
      title: 'Views within an hour',
      description: `How often the group formed anew, as the device that saw most of them counts: each time a device
        came, went or was lost.`,
      unit: units.Short,
      queries: [[`max by (job) (changes(${rivulet('collective_view')}[1h]))`, '{{job}}']],
      steps: [[null, 'green'], [3, 'orange']],
    }),
    number({
      title: 'Since the last step',
      description: 'Of the device that is furthest behind.',
      unit: units.Seconds,
      queries: [[maxBy('job', since('last_step_timestamp_seconds')), '{{job}}']],
      steps: [[null, 'green'], [60, 'orange'], [300, 'red']],
    }),
    rows({
      title: 'Members',
      description: 'Rank of each device in its view. Ranks are given by the order of names and have no other meaning.',
      unit: units.Short,
      width: 12,
      height: 4,
      queries: [
        [
          `${rivulet('collective_rank')} * on (job, instance) group_left (device, rivulet_job) ${rivulet('device_info')}`,
          '{{device}}',
        ],
      ],
      rename: { Value: 'rank', rivulet_job: 'job of Rivulet', job: 'job of Prometheus' },
    }),
  ],
};

const rounds = {
  question: 'Do rounds come through?',
  panels: [
    lines({
      title: 'Rounds per second, by what became of them',
      width: 12,
      description: `By result. applied: the model made a step; idle: no device had rows; deferred: the plan waited for more; skipped:
        the sum was not finite, or a dry run; local_step: a step of this device alone.`,
      unit: units.OpsPerSecond,
      queries: [[maxBy('job, result', rate('train_steps_total')), '{{result}} {{job}}']],
    }),
    lines({
      title: 'Time of a round',
      width: 12,
      description: `From the end of the last round to the end of this one. The percentile is read from buckets and is coarse:
        0.5, 1, 2.5, 6 and 15 s are neighbours.`,
      unit: units.Seconds,
      queries: [
        [mean('instance', 'step_duration_seconds', 'phase="total"'), 'mean {{instance}}'],
        [quantile(0.95, 'instance', 'step_duration_seconds', 'phase="total"'), 'p95 {{instance}}'],
      ],
    }),
    lines({
      title: 'Time of an exchange, 95th percentile',
      width: 12,
      description: `By operation: from the facts of this device to the end of the round, waiting for the peers
        included.`,
      unit: units.Seconds,
      queries: [[quantile(0.95, 'instance, op', 'collective_duration_seconds'), '{{op}} {{instance}}']],
    }),
    lines({
      title: 'Exchanges per second',
      width: 12,
      description: `By operation and result. round: facts and payload of one round; failed: a peer was lost or late, and the group forms
        again. state: the state that a view begins with. early_payload: contributions that left with the facts, used or for nothing;
        those save one crossing of the wire.`,
      unit: units.OpsPerSecond,
      queries: [[sumBy('instance, op, result', rate('collective_operations_total')), '{{op}} {{result}} {{instance}}']],
    }),
  ],
};

const weights = {
  question: 'Who brings how many rows?',
  panels: [
    lines({
      title: 'Rows of a batch, by device',
      description: 'Rows that a gradient was computed from, on average: by default as many as pay (batch.policy).',
      unit: units.Short,
      queries: [[mean('instance', 'batch_rows'), '{{instance}}']],
    }),
    lines({
      title: 'Weight of each device',
      description: "Its share of the group's rows: what its gradient counts for.",
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
      title: 'Offsets agreed on, per partition',
      description: 'How far the group has come since the start of the run. Every row below is accounted for.',
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
      title: 'Time from own facts to the end of the round',
      description: `Mean per round. A round ends for all at once, so the lowest line is the device that entered last:
        the one that all others wait for.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="sync"'), '{{instance}}']],
    }),
    lines({
      title: 'Time of the gradient',
      description: `Mean per round. A device far above the others holds them up: fewer rows a batch (batch.max) or a
        faster machine.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="compute"'), '{{instance}}']],
    }),
    lines({
      title: 'Time until the device entered the round',
      description: `Mean per round, from the end of the last: until its rows had come or the tick was over. High
        everywhere: the group waits for rows, not for a device.`,
      unit: units.Seconds,
      queries: [[mean('instance', 'step_duration_seconds', 'phase="wait"'), '{{instance}}']],
    }),
  ],
};

const bytes = {
  question: 'What does agreement cost on the wire?',
  panels: [
    lines({
      title: 'Bytes sent to peers, per second',
      description: 'Of each device.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance', rate('collective_sent_bytes_total')), '{{instance}}']],
    }),
    lines({
      title: 'Bytes received from peers, per second',
      description: 'Of each device.',
      unit: units.BytesPerSecondIEC,
      queries: [[sumBy('instance', rate('collective_received_bytes_total')), '{{instance}}']],
    }),
    lines({
      title: 'Bytes sent, of the rows\' bytes',
      description: `Bytes sent to peers, of the bytes of the records trained on; of the job and of each device. Above 100 %, shipping the rows to
        one server would send less: compress more (compression.policy), or agree less often (sync.policy).`,
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
      description: `Of all devices. facts: what they tell of each other, and what leaves in the same message; contributions: gradients or
        movements; state: for devices that come anew; rows: those that are moved between devices.`,
      unit: units.BytesPerSecondIEC,
      stacked: true,
      queries: [[sumBy('job, traffic', rate('sync_sent_bytes_total')), '{{traffic}} {{job}}']],
    }),
    lines({
      title: 'Bytes of compressed contributions, by part',
      description: `Of all devices, each contribution counted once however many peers it goes to. values: numbers with their scales;
        positions: where they belong, and what stays empty.`,
      unit: units.BytesPerSecondIEC,
      stacked: true,
      queries: [[sumBy('job, part', rate('sync_slot_bytes_total')), '{{part}} {{job}}']],
    }),
    lines({
      title: 'Bytes sent per round',
      description: 'Facts and payload to all peers.',
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
      title: 'Left for later rounds by compression',
      width: 24,
      height: 6,
      description: `The norm of what a device has contributed and not sent yet. 0 without compression. One that grows
        without end: the share that is sent is too small. The second is what was lost with states that the group gave up.`,
      unit: units.Short,
      queries: [
        [rivulet('residual_norm'), '{{instance}}'],
        [sumBy('instance', increase('residual_lost_norm_total')), '{{instance}}, lost'],
      ],
    }),
  ],
};

const choice = {
  question: 'How does it choose to agree?',
  panels: [
    lines({
      title: 'Own steps until the group agrees next',
      description: `What the group has planned: steps that each device makes on its own copy. 0: it agrees on gradients, after
        each batch.`,
      unit: units.Short,
      queries: [[maxBy('job', rivulet('sync_local_steps')), '{{job}}']],
    }),
    lines({
      title: 'Share of the parameters that is sent',
      description: 'Of the next contributions. 1: all of them.',
      unit: units.PercentUnit,
      queries: [[maxBy('job', rivulet('sync_keep_ratio')), '{{job}}']],
    }),
    lines({
      title: 'How alike the streams are',
      description: `Coherence of policy auto: about 1 where all streams move the model the same way, whatever the noise of their
        batches. Below 0.6 devices would drift apart, and agree more often.`,
      unit: units.Short,
      queries: [[maxBy('job', rivulet('sync_figure', 'figure="coherence"')), '{{job}}']],
    }),
    lines({
      title: 'How far labels are apart',
      description: `Mean Jensen-Shannon distance of the devices' labels to those of the group: 0 alike, 1 nothing in common. Where it
        is large, policy auto of inject has devices send each other copies of rows.`,
      unit: units.Short,
      max: 1,
      queries: [[maxBy('job', rivulet('sync_figure', 'figure="skew"')), '{{job}}']],
    }),
    lines({
      title: 'Copies of others\' rows in steps, per second',
      description: `Rows that a device computes on besides its own (inject.policy). Their owners train and announce them; their bytes
        are those sent for rows.`,
      unit: units.CountsPerSecond,
      queries: [[sumBy('job', rate('injected_rows_trained_total')), '{{job}}']],
    }),
    lines({
      title: 'Time of an exchange, expected and measured',
      description: `Of policy auto, without waiting for who came later. What is expected comes from what exchanges of other sizes
        took; the wait is what devices that could compute lose to the last one.`,
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
  question: 'Who carries it, and who holds it up?',
  panels: [
    lines({
      title: 'Share in the last step',
      description: `The weight of a device's contribution: its rows of all rows of the round.`,
      unit: units.PercentUnit,
      max: 1,
      queries: [[rivulet('collective_weight_ratio'), '{{instance}}']],
    }),
    lines({
      title: 'Rounds in which it was last, per second',
      description: 'The group waited for this device: for its rows, or for its computing.',
      unit: units.CountsPerSecond,
      queries: [[rate('collective_rounds_last_total'), '{{instance}}']],
    }),
    lines({
      title: 'Ready before the last one',
      description: 'How long it had to wait for the last device of the last round. Where it is 0, this one was the last.',
      unit: units.Seconds,
      queries: [[rivulet('collective_spare_seconds'), '{{instance}}']],
    }),
  ],
};

const memory: Row = {
  folded: true,
  question: 'What memory is planned for it?',
  panels: [
    lines({
      title: 'Memory planned, by part',
      description: `What each part may take at most, of the device that needs most for it; \`rivulet validate\` names
        the keys that lower it.`,
      unit: units.BytesIEC,
      width: 16,
      stacked: true,
      queries: [[maxBy('part', rivulet('memory_planned_bytes')), '{{part}}']],
    }),
    lines({
      title: 'Share of the cap that is planned',
      description: 'Sum of the parts by device.memory. Above 1 a device does not start.',
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
  question: 'What goes wrong? Flat while all is well',
  folded: true,
  panels: [
    lines({
      title: 'View and devices in it',
      width: 12,
      description: `The number of the view grows by one each time the group forms; devices in it are 0 in between. All
        devices show the same, or soon do.`,
      unit: units.Short,
      queries: [
        [rivulet('collective_view'), 'view {{instance}}'],
        [rivulet('collective_world_size'), 'devices {{instance}}'],
      ],
    }),
    lines({
      title: 'Records of the control topic that were refused',
      width: 12,
      description: `Per step of the picture, by reason. refused: what somebody may not say; foreign: of another job; impossible,
        unreadable: somebody else writes into this topic. Records that come twice, or of a session that has ended, are normal and not
        shown.`,
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
  title: 'Rivulet / Agreement',
  description: 'How the devices of a job train one model: rounds, batches, weights, bytes, and who waits for whom.',
  rows: [learning, whole, rounds, choice, weights, shares, waiting, bytes, wrong, memory],
};
