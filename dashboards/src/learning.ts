// First row of the dashboards Fleet, Node and Synchronization: learning progress, by device and class.
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './frame';
import { lines } from './panels';
import { maxBy, minBy, rivulet } from './promql';

/** One line per device, or per class. */
export const learning: Row = {
  question: 'Does it learn?',
  panels: [
    lines({
      leadsToNode: true,
      title: 'Loss',
      description: `Moving average of the group's loss on each batch, before training on it. All devices of a job show the same line; a
        device whose line differs is not in the group.`,
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('train_loss', 'window="average"')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Score',
      description: `Accuracy of the group: prequential (on each batch before training on it), and on held-out rows. Accuracy of each
        device on its own rows, and the accuracy of always predicting its most frequent class.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [
        [maxBy('instance, metric', rivulet('eval_score', 'metric=~".*accuracy"')), '{{metric}} {{instance}}'],
        [maxBy('instance', rivulet('live_largest_class_ratio')), 'most frequent class {{instance}}'],
      ],
      mayBeEmpty: 'the model predicts values, not classes.',
    }),
    lines({
      title: 'Recall of each class',
      description: `Share of the held-out rows of a class that the model predicts correctly. A class with low recall is rare in the
        streams or confused with another one: \`rivulet evaluate\` prints which.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[maxBy('job, class', rivulet('eval_class_recall')), '{{class}}']],
      mayBeEmpty: 'no device has held-out rows (evaluate.held_out), or they have not been evaluated yet.',
    }),
    lines({
      title: 'Recall of each class, live',
      description: `Share of the rows of a class that the model predicts correctly before training on them, on the device with the
        lowest recall. It reveals a weak rare class, which the accuracy hides.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[minBy('job, class', rivulet('live_class_recall')), '{{class}}']],
      mayBeEmpty: 'the model predicts values, not classes.',
    }),
    lines({
      title: 'Precision of each class, live',
      description: `Share of the rows predicted as a class that belong to it, before training on them, on the device with the lowest
        precision. Low precision with high recall means false alarms.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[minBy('job, class', rivulet('live_class_precision')), '{{class}}']],
      mayBeEmpty: 'the model predicts values, not classes.',
    }),
    lines({
      leadsToNode: true,
      title: 'Mean absolute error',
      description: 'Error of each device on its own rows, before training on them, in the unit of the targets.',
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('eval_score', 'metric="own_mean_absolute_error"')), '{{instance}}']],
      mayBeEmpty: 'the model predicts classes.',
    }),
    lines({
      leadsToNode: true,
      title: 'R²',
      description: `R² of each device on its own rows, before training on them. 1 is perfect, 0 equals predicting the mean of the targets,
        negative values are worse.`,
      unit: units.Short,
      max: 1,
      width: 12,
      queries: [[maxBy('instance', rivulet('eval_score', 'metric="own_r2"')), '{{instance}}']],
      mayBeEmpty: 'the model predicts classes.',
    }),
    lines({
      leadsToNode: true,
      title: 'Loss on own rows, by device',
      description: `Loss of each device on its own rows before training on them, in the last round. A device far above the others
        receives different rows, or wrong labels.`,
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('train_own_loss')), '{{instance}}']],
    }),
  ],
};
