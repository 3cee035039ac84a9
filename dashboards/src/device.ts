// The machine under a device: heat, power, load, memory, as far as it has sensors.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { lines, rows } from './panels';
import { ofTopic, rate, rivulet, sumBy } from './promql';

const untold = 'this machine has no such sensor.';

const work = {
  question: 'How hard does it work?',
  panels: [
    lines({
      title: 'GPU, share of time computing',
      width: 12,
      description: 'As the driver of an integrated GPU reports it.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[rivulet('gpu_utilization_ratio'), '{{instance}} {{gpu}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Clocks',
      width: 12,
      description: 'Of the GPU, and of the fastest core of the processor, now.',
      unit: units.Hertz,
      queries: [
        [rivulet('gpu_frequency_hertz'), '{{instance}} {{gpu}}'],
        [rivulet('cpu_frequency_hertz'), '{{instance}} processor'],
      ],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Memory of the machine',
      width: 12,
      description: `All of it, and what can be had without swapping. On a Jetson the GPU takes from the same.`,
      unit: units.BytesIEC,
      queries: [
        [rivulet('board_memory_total_bytes'), 'all {{instance}}'],
        [rivulet('board_memory_available_bytes'), 'available {{instance}}'],
      ],
    }),
  ],
};

const reading = lines({
  title: 'Records read, per second',
  width: 12,
  description: 'What it works on: records that came from Kafka.',
  unit: units.CountsPerSecond,
  queries: [[sumBy('instance', rate('kafka_records_consumed_total', ofTopic)), '{{instance}}']],
});

const heat = {
  question: 'How hot does it get, and what does it take?',
  panels: [
    lines({
      title: 'Heat, by zone',
      description: 'Of the zones that the kernel names. One that is powered down has no line.',
      unit: units.Celsius,
      queries: [[rivulet('temperature_celsius'), '{{instance}} {{zone}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Power, by rail',
      description: `Of supply rails, or of processor packages that count their own energy. VDD_IN is the whole module
        of a Jetson, without what hangs on the board that carries it.`,
      unit: units.Watt,
      queries: [[rate('energy_joules_total'), '{{instance}} {{rail}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Energy for a thousand rows',
      description: 'Joules of the rail that takes most, by rows trained. It counts what else runs on the machine, too.',
      unit: units.Joule,
      queries: [
        [
          `1000 * max by (instance) (${rate('energy_joules_total')}) / ${sumBy('instance', rate('rows_trained_total'))}`,
          '{{instance}}',
        ],
      ],
      mayBeEmpty: untold,
    }),
  ],
};

const machine = {
  question: 'Which machine is it?',
  panels: [
    rows({
      title: 'Machines',
      width: 24,
      height: 4,
      description: 'Product name, as the firmware reports it.',
      unit: units.Short,
      queries: [[rivulet('board_info'), '']],
      hide: ['Time', 'Value', '__name__'],
      mayBeEmpty: untold,
    }),
  ],
};

const wrong: Row = {
  question: 'What goes wrong? Flat while all is well',
  folded: true,
  panels: [
    lines({
      title: 'Slowed down, times per second',
      width: 12,
      description: `How often the machine took its clocks back to stay within its limits: heat of a processor package,
        or a Jetson's monitors of over-current. More than 0 and falling clocks explain a slower device.`,
      unit: units.CountsPerSecond,
      queries: [[rate('throttle_events_total'), '{{instance}} {{by}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Sensors that could not be read, per second',
      width: 12,
      description: 'They are there and refuse: powered down, or of a driver that answers nonsense.',
      unit: units.CountsPerSecond,
      queries: [[rate('sensor_read_errors_total'), '{{instance}} {{sensor}}']],
    }),
  ],
};

export const device: Frame = {
  uid: 'rivulet-device',
  title: 'Rivulet / Device',
  description: 'The machine under each device: load, clocks, memory, heat, power.',
  rows: [{ ...work, panels: [reading, ...work.panels] }, heat, machine, wrong],
};
