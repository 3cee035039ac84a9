// Panel builders with our style. A panel definition has only title, description, unit and queries.
import * as common from '@grafana/grafana-foundation-sdk/common';
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap';
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import type * as cog from '@grafana/grafana-foundation-sdk/cog';

export const datasource: common.DataSourceRef = { type: 'prometheus', uid: '${datasource}' };

/** An expression and the legend of its lines; `{{label}}` is replaced by the label's value. */
export type Query = [expr: string, legend: string];

export interface Panel {
  title: string;
  /** Full sentences: the meaning of the values, and how to interpret them. */
  description: string;
  unit: string;
  queries: Query[];
  /** Columns, out of 24. */
  width?: number;
  height?: number;
  /** Reason why the panel may have no series. Appended to the description, where dashboards/check finds it. */
  mayBeEmpty?: string;
}

export interface Lines extends Panel {
  stacked?: boolean;
  max?: number;
  logarithmic?: boolean;
  /** Each line is a device; a click on it opens the dashboard Node for that device. */
  leadsToNode?: boolean;
}

export interface Number extends Panel {
  /** Colour of the values from a threshold on; the first entry has no threshold. */
  steps?: [from: number | null, colour: string][];
  words?: Record<string, string>;
  decimals?: number;
}

export interface Rows extends Panel {
  /** Hidden columns. */
  hide?: string[];
  /** Column headings. */
  rename?: Record<string, string>;
}

export type Built = cog.Builder<dashboard.Panel>;

const refIds = 'ABCDEFGH';

function query([expr, legend]: Query, at: number): prometheus.DataqueryBuilder {
  return new prometheus.DataqueryBuilder().refId(refIds.charAt(at)).expr(expr).legendFormat(legend).datasource(datasource);
}

/** Description on one line, with `mayBeEmpty` appended. */
const described = (p: Panel): string =>
  (p.mayBeEmpty ? `${p.description} May be empty: ${p.mayBeEmpty}` : p.description).replace(/\s+/g, ' ');

/** Methods that all panel builders of the SDK share; the SDK has no type for them. */
interface Common<Self> {
  title(text: string): Self;
  description(text: string): Self;
  unit(unit: string): Self;
  datasource(ref: common.DataSourceRef): Self;
  span(columns: number): Self;
  height(rows: number): Self;
}

function common_<T extends Common<T>>(builder: T, p: Panel, width: number, height: number): T {
  return builder
    .title(p.title)
    .description(described(p))
    .unit(p.unit)
    .datasource(datasource)
    .span(p.width ?? width)
    .height(p.height ?? height);
}

const nodeOfLine =
  '/d/rivulet-node?${datasource:queryparam}&${job:queryparam}&var-instance=${__field.labels.instance}&${__url_time_range}';

function legend(): common.VizLegendOptionsBuilder {
  return new common.VizLegendOptionsBuilder()
    .displayMode(common.LegendDisplayMode.List)
    .placement(common.LegendPlacement.Bottom)
    .showLegend(true);
}

export function lines(p: Lines): Built {
  const panel = common_(new timeseries.PanelBuilder(), p, 8, 8)
    .targets(p.queries.map((q, at) => query(q, at).range()))
    .legend(legend())
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending))
    .lineWidth(1)
    .fillOpacity(p.stacked ? 40 : 5)
    .showPoints(common.VisibilityMode.Auto)
    .spanNulls(false);
  if (!p.logarithmic) panel.axisSoftMin(0);
  if (p.stacked) panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal).group('A'));
  if (p.max !== undefined) panel.max(p.max);
  if (p.leadsToNode) panel.dataLinks([new dashboard.DashboardLinkBuilder('This device').url(nodeOfLine)]);
  if (p.logarithmic)
    panel.scaleDistribution(new common.ScaleDistributionConfigBuilder().type(common.ScaleDistribution.Log).log(10));
  return panel;
}

export function number(p: Number): Built {
  const steps = (p.steps ?? [[null, 'text']]).map(([value, color]): dashboard.Threshold => ({ value, color }));
  const panel = common_(new stat.PanelBuilder(), p, 4, 4)
    .targets(p.queries.map((q, at) => query(q, at).instant()))
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.None)
    .textMode(common.BigValueTextMode.Auto)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false).fields(''))
    .thresholds(new dashboard.ThresholdsConfigBuilder().mode(dashboard.ThresholdsMode.Absolute).steps(steps));
  if (p.decimals !== undefined) panel.decimals(p.decimals);
  if (p.words) {
    const options = Object.fromEntries(Object.entries(p.words).map(([value, text], index) => [value, { text, index }]));
    panel.mappings([{ type: dashboard.MappingType.ValueToText, options }]);
  }
  return panel;
}

export function rows(p: Rows): Built {
  const hidden = ['Time', '__name__', ...(p.hide ?? [])];
  return common_(new table.PanelBuilder(), p, 12, 8)
    .targets(p.queries.map((q, at) => query(q, at).instant().format(prometheus.PromQueryFormat.Table)))
    .withTransformation({
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(hidden.map((name) => [name, true])),
        renameByName: p.rename ?? {},
      },
    });
}

/** Heatmap of the buckets of a histogram. */
export function heat(p: Panel): Built {
  return common_(new heatmap.PanelBuilder(), p, 8, 8)
    .targets(p.queries.map((q, at) => query(q, at).range().format(prometheus.PromQueryFormat.Heatmap)))
    .calculate(false)
    .color(
      new heatmap.HeatmapColorOptionsBuilder()
        .mode(heatmap.HeatmapColorMode.Scheme)
        .scheme('Blues')
        .scale(heatmap.HeatmapColorScale.Exponential)
        .exponent(0.5)
        .steps(64)
        .reverse(false),
    )
    .yAxis(new heatmap.YAxisConfigBuilder().unit(p.unit));
}
