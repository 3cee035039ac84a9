// Common parts of all dashboards: variables, annotations, links to the other dashboards.
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import { type Built, datasource } from './panels';
import { increase, ofProcess, rivulet } from './promql';

/** A heading and the panels that answer it. */
export interface Row {
  question: string;
  panels: Built[];
  /** Collapsed by default: its panels are flat in normal operation. */
  folded?: true;
}

export interface Frame {
  /** Never changes: links and bookmarks contain it. */
  uid: string;
  title: string;
  description: string;
  rows: Row[];
}

const tag = 'rivulet';

const anything: dashboard.VariableOption = { selected: true, text: ['All'], value: ['$__all'] };

function choice(name: string, label: string, query: string): dashboard.QueryVariableBuilder {
  return new dashboard.QueryVariableBuilder(name)
    .label(label)
    .datasource(datasource)
    .query({ query, refId: name })
    .definition(query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(dashboard.VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.+')
    .current(anything);
}

const variables = [
  new dashboard.DatasourceVariableBuilder('datasource').label('Data Source').type('prometheus'),
  choice('job', 'Job', 'label_values(rivulet_build_info, job)'),
  choice('instance', 'Instance', 'label_values(rivulet_build_info{job=~"$job"}, instance)'),
  choice('topic', 'Topic', `label_values(${rivulet('kafka_assigned_partitions')}, topic)`),
];

/** Grafana marks the times at which the expression is above 0. */
function mark(name: string, colour: string, title: string, expr: string): dashboard.AnnotationQueryBuilder {
  return new dashboard.AnnotationQueryBuilder()
    .name(name)
    .datasource(datasource)
    .enable(true)
    .iconColor(colour)
    .expr(expr)
    .step('15s')
    .titleFormat(title);
}

const annotations = [
  mark('Views', 'blue', 'New view on {{instance}}', `changes(${rivulet('collective_view')}[1m])`),
  mark('Restarts', 'orange', '{{instance}} started', `(${ofProcess('start_time_seconds')}) * 1000`).useValueForTime(true),
  mark('Dropped rows', 'red', '{{instance}} dropped rows: {{reason}}', increase('rows_dropped_total', 'reason!~"filtered|context"')),
  mark(
    'Rejected control records',
    'purple',
    '{{instance}} rejected records of the control topic: {{reason}}',
    increase('control_records_ignored_total', 'reason=~"refused|foreign|impossible|unreadable"'),
  ),
];

export function build(frame: Frame): dashboard.Dashboard {
  const builder = new dashboard.DashboardBuilder(frame.title)
    .uid(frame.uid)
    .description(frame.description)
    .tags([tag])
    .readonly()
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .time({ from: 'now-30m', to: 'now' })
    .timezone('browser')
    .refresh('10s')
    .variables(variables)
    .annotations(annotations)
    .link(
      new dashboard.DashboardLinkBuilder('Rivulet')
        .type(dashboard.DashboardLinkType.Dashboards)
        .tags([tag])
        .asDropdown(false)
        .includeVars(true)
        .keepTime(true)
        .targetBlank(false)
        .icon('external link')
        .tooltip('Other dashboards, with the same variables and time range')
        .url(''),
    );
  for (const row of frame.rows) {
    const heading = new dashboard.RowBuilder(row.question).collapsed(row.folded === true);
    if (row.folded) for (const panel of row.panels) heading.withPanel(panel);
    builder.withRow(heading);
    if (!row.folded) for (const panel of row.panels) builder.withPanel(panel);
  }
  const built = builder.build();
  const all = (built.panels ?? []).flatMap((panel) => [panel, ...('panels' in panel ? panel.panels : [])]);
  all.forEach((panel, at) => (panel.id = at + 1));
  // The placement set by the SDK hides both in a menu.
  for (const shown of [...(built.links ?? []), ...(built.annotations?.list ?? [])]) delete shown.placement;
  return built;
}

