// The first question of every dashboard of devices: does the model learn, and whose rows does it not learn?
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './frame';
import { lines } from './panels';
import { maxBy, minBy, rivulet } from './promql';

/** With a title of its own for each panel: `of` is what a line stands for. */
export const learning: Row = {
  question: 'Does it learn?',
  panels: [
    lines({
      leadsToNode: true,
      title: 'Loss',
      description: `Of the group, before training on each batch, as a moving average. Devices of one job show the same line; one that
        differs is not of the group.`,
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('train_loss', 'window="average"')), '{{instance}}']],
    }),
    lines({
      leadsToNode: true,
      title: 'Score',
      description: `Accuracy: of the group, prequential, of each batch before it is trained, and on held-out rows, by devices that
        have some; of each device on its own rows; and what always answering a device's largest class would have. A regression
        has none.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [
        [maxBy('instance, metric', rivulet('eval_score', 'metric=~".*accuracy"')), '{{metric}} {{instance}}'],
        [maxBy('instance', rivulet('live_largest_class_ratio')), 'always the largest class {{instance}}'],
      ],
      mayBeEmpty: 'a regression has no accuracy.',
    }),
    lines({
      title: 'Recall of each class',
      description: `Share of the held-out rows of a class that the model recognizes. One that stays behind is rare in the streams, or taken
        for another: \`rivulet evaluate\` prints for which.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[maxBy('job, class', rivulet('eval_class_recall')), '{{class}}']],
      mayBeEmpty: 'no device has held-out rows (evaluate.held_out), or none has been measured yet.',
    }),
    lines({
      title: 'Recall of each class, live',
      description: `Share of the rows of a class that the model recognizes before it is trained on them; of the device that recognizes
        least. An accuracy hides a rare class, this does not.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[minBy('job, class', rivulet('live_class_recall')), '{{class}}']],
      mayBeEmpty: 'a regression has no classes.',
    }),
    lines({
      title: 'Precision of each class, live',
      description: `Share of the rows that the model takes for a class and that are of it, before it is trained on them; of the device
        with the least. Low with a high recall: false alarms.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[minBy('job, class', rivulet('live_class_precision')), '{{class}}']],
      mayBeEmpty: 'a regression has no classes.',
    }),
    lines({
      leadsToNode: true,
      title: 'Mean absolute error',
      description: `Of each device on its own rows, before they are trained, in the unit of the targets. A classification has none.`,
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('eval_score', 'metric="own_mean_absolute_error"')), '{{instance}}']],
      mayBeEmpty: 'a classification has none.',
    }),
    lines({
      leadsToNode: true,
      title: 'R²',
      description: `Of each device on its own rows, before they are trained: 1 is right, 0 no better than the mean of the targets, below
        it is worse. A classification has none.`,
      unit: units.Short,
      max: 1,
      width: 12,
      queries: [[maxBy('instance', rivulet('eval_score', 'metric="own_r2"')), '{{instance}}']],
      mayBeEmpty: 'a classification has none.',
    }),
    lines({
      leadsToNode: true,
      title: 'Loss of each device on its own rows',
      description: `Before they are trained, in the last round. A device far above the others sees rows that the others do not, or whose
        labels are wrong.`,
      unit: units.Short,
      width: 12,
      queries: [[maxBy('instance', rivulet('train_own_loss')), '{{instance}}']],
    }),
  ],
};
