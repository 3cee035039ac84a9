// The machine that a device runs on: load, memory, temperature and power, as far as it has sensors.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Frame, Row } from './frame';
import { lines, rows } from './panels';
import { ofTopic, rate, rivulet, sumBy } from './promql';

const untold = 'this machine has no such sensor.';

const work = {
  question: 'How busy is it?',
  panels: [
    lines({
      title: 'GPU utilization',
      width: 12,
      description: 'Share of time in which the GPU is busy, as reported by the driver of an integrated GPU.',
      unit: units.PercentUnit,
      max: 1,
      queries: [[rivulet('gpu_utilization_ratio'), '{{instance}} {{gpu}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Clocks',
      width: 12,
      description: 'Current frequencies of the GPU and of the fastest processor core.',
      unit: units.Hertz,
      queries: [
        [rivulet('gpu_frequency_hertz'), '{{instance}} {{gpu}}'],
        [rivulet('cpu_frequency_hertz'), '{{instance}} processor'],
      ],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Machine memory',
      width: 12,
      description: 'Total memory, and memory available without swapping. On a Jetson it includes the memory of the GPU.',
      unit: units.BytesIEC,
      queries: [
        [rivulet('board_memory_total_bytes'), 'total {{instance}}'],
        [rivulet('board_memory_available_bytes'), 'available {{instance}}'],
      ],
    }),
  ],
};

const reading = lines({
  title: 'Records read per second',
  width: 12,
  description: 'Kafka records received: the load on the machine.',
  unit: units.CountsPerSecond,
  queries: [[sumBy('instance', rate('kafka_records_consumed_total', ofTopic)), '{{instance}}']],
});

const heat = {
  question: 'How hot, and how much power?',
  panels: [
    lines({
      title: 'Temperatures',
      description: 'By thermal zone of the kernel. A zone that is powered down has no line.',
      unit: units.Celsius,
      queries: [[rivulet('temperature_celsius'), '{{instance}} {{zone}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Power, by rail',
      description: `Power of supply rails, or of processor packages with energy counters. On a Jetson VDD_IN is the whole module,
        without the carrier board and its peripherals.`,
      unit: units.Watt,
      queries: [[rate('energy_joules_total'), '{{instance}} {{rail}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Energy per thousand rows',
      description: 'Energy of the rail with the highest consumption, divided by rows trained. It includes other programs on the machine.',
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
      description: 'Product name, as reported by the firmware.',
      unit: units.Short,
      queries: [[rivulet('board_info'), '']],
      hide: ['Time', 'Value', '__name__'],
      mayBeEmpty: untold,
    }),
  ],
};

const wrong: Row = {
  question: 'Faults (flat when healthy)',
  folded: true,
  panels: [
    lines({
      title: 'Throttling events per second',
      width: 12,
      description: `Clock reductions because a processor package was too hot, or an over-current monitor of a Jetson triggered. Values
        above 0 with falling clocks explain a slow device.`,
      unit: units.CountsPerSecond,
      queries: [[rate('throttle_events_total'), '{{instance}} {{by}}']],
      mayBeEmpty: untold,
    }),
    lines({
      title: 'Failed sensor reads per second',
      width: 12,
      description: 'Reads of existing sensors that failed: the sensor is powered down, or its driver returns invalid values.',
      unit: units.CountsPerSecond,
      queries: [[rate('sensor_read_errors_total'), '{{instance}} {{sensor}}']],
    }),
  ],
};

export const device: Frame = {
  uid: 'rivulet-device',
  title: 'Rivulet / Device',
  description: 'The machine of each device: load, clocks, memory, temperature, power.',
  rows: [{ ...work, panels: [reading, ...work.panels] }, heat, machine, wrong],
};
