// The first question of every dashboard of devices: does the model learn, and whose rows does it not learn?
import * as units from '@grafana/grafana-foundation-sdk/units';
import type { Row } from './frame';
import { lines } from './panels';
import { maxBy, rivulet } from './promql';

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
      description: `Accuracy: prequential, of each batch before it is trained, and on held-out rows, by devices that have some.
        A regression has none.`,
      unit: units.PercentUnit,
      max: 1,
      width: 12,
      queries: [[maxBy('instance, metric', rivulet('eval_score')), '{{metric}} {{instance}}']],
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
