// What a PromQL expression says, read with Prometheus's own grammar.
import { parser } from '@prometheus-io/lezer-promql';

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

/** What Grafana puts in. The interval is one that nobody writes by hand, so that it is known again. */
export const rateInterval = '4321s';
const forParsing: Record<string, string> = {
  __rate_interval: rateInterval,
  __interval: '15s',
  __range: '30m',
};

/** `$name` and `${name}`; an unknown one stays, and no expression with it parses. */
export const substitute = (expr: string, values: Record<string, string>): string =>
  expr.replace(/\$(\w+)|\$\{(\w+)\}/g, (text, bare: string, braced: string) => values[bare ?? braced] ?? text);

export interface Matcher {
  label: string;
  operator: string;
  value: string;
}

export interface Selector {
  metric: string;
  matchers: Matcher[];
  text: string;
  /** Of a range vector; empty for an instant one. */
  range: string;
  /** The function that the range vector goes into. */
  within: string;
}

export interface Expression {
  /** Sentences; empty when all is well. */
  errors: string[];
  selectors: Selector[];
}

const matcherOf = (text: string): Matcher | undefined => {
  const found = /^([^=!~]+?)\s*(=~|!~|!=|=)\s*(["'`])(.*)\3$/s.exec(text);
  return found ? { label: found[1]!, operator: found[2]!, value: found[4]! } : undefined;
};

function selectorOf(node: SyntaxNode, text: (n: SyntaxNode) => string): Selector {
  const name = node.getChild('Identifier');
  const list = node.getChild('LabelMatchers');
  const matchers: Matcher[] = [];
  for (let child = list?.firstChild ?? null; child; child = child.nextSibling) {
    const matcher = matcherOf(text(child));
    if (matcher) matchers.push(matcher);
  }
  const named = matchers.find((m) => m.label === '__name__' && m.operator === '=');
  const matrix = node.parent?.name === 'MatrixSelector' ? node.parent : null;
  let range = '';
  let within = '';
  if (matrix) {
    range = text(matrix).slice(node.to - matrix.from).replace(/[[\]\s]/g, '');
    let call: SyntaxNode | null = matrix.parent;
    while (call && call.name !== 'FunctionCall') call = call.parent;
    const id = call?.getChild('FunctionIdentifier');
    if (id) within = text(id);
  }
  return { metric: name ? text(name) : (named?.value ?? ''), matchers, text: text(node), range, within };
}

export function read(original: string): Expression {
  const expr = substitute(original, forParsing);
  const text = (n: SyntaxNode): string => expr.slice(n.from, n.to);
  const errors: string[] = [];
  const selectors: Selector[] = [];
  parser.parse(expr).iterate({
    enter: (ref) => {
      if (ref.type.isError) errors.push(`does not parse at character ${ref.from + 1}: ${expr.slice(ref.from, ref.from + 30)}`);
      if (ref.name === 'VectorSelector') selectors.push(selectorOf(ref.node, text));
    },
  });
  if (expr.trim() === '') errors.push('is empty');
  return { errors, selectors };
}

/** Series of a histogram by the name of the metric itself. */
export function familyOf(metric: string, families: ReadonlySet<string>): string {
  if (families.has(metric)) return metric;
  const base = metric.replace(/_(bucket|sum|count)$/, '');
  return families.has(base) ? base : metric;
}
