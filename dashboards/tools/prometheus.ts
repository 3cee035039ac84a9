// What is asked of a live Prometheus.

export interface Sample {
  metric: Record<string, string>;
  /** Of an instant query. */
  value?: [number, string];
  /** Of a range query. */
  values?: [number, string][];
}

interface Answer<T> {
  status: string;
  data: T;
  error?: string;
}

/** Others use that Prometheus, too. */
const atOnce = 8;

export class Prometheus {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly url: string) {}

  private async get<T>(path: string, words: Record<string, string> = {}): Promise<T> {
    if (this.running >= atOnce) await new Promise<void>((wake) => this.waiting.push(wake));
    else ++this.running;
    try {
      return await this.fetch<T>(path, words);
    } finally {
      const next = this.waiting.shift(); // takes this one's place
      if (next) next();
      else --this.running;
    }
  }

  private async fetch<T>(path: string, words: Record<string, string>): Promise<T> {
    const response = await fetch(`${this.url.replace(/\/$/, '')}/api/v1/${path}?${new URLSearchParams(words).toString()}`, {
      signal: AbortSignal.timeout(10_000),
    });
    const answer = (await response.json()) as Answer<T>;
    if (answer.status !== 'success') throw new Error(answer.error ?? `answered ${response.status}`);
    return answer.data;
  }

  async instant(query: string): Promise<Sample[]> {
    return (await this.get<{ result: Sample[] }>('query', { query })).result;
  }

  async range(query: string, seconds: number, step: number): Promise<Sample[]> {
    const end = Date.now() / 1000;
    const words = { query, start: String(end - seconds), end: String(end), step: String(step) };
    return (await this.get<{ result: Sample[] }>('query_range', words)).result;
  }

  labelValues(label: string, match: string): Promise<string[]> {
    return this.get<string[]>(`label/${label}/values`, { 'match[]': match });
  }

  /** Names of the metrics of all targets of a scrape job. */
  async families(job: string): Promise<Set<string>> {
    const known = await this.get<{ metric: string }[]>('targets/metadata', { match_target: `{job="${job}"}` });
    return new Set(known.map((m) => m.metric));
  }

  /** Rules that are loaded, with what went wrong with them last. */
  async rules(): Promise<Map<string, string>> {
    const { groups } = await this.get<{ groups: { rules: { name: string; lastError?: string }[] }[] }>('rules');
    return new Map(groups.flatMap((g) => g.rules.map((r): [string, string] => [r.name, r.lastError ?? ''])));
  }
}

export const isFinite_ = (s: Sample): boolean =>
  [...(s.value ? [s.value] : []), ...(s.values ?? [])].some(([, value]) => Number.isFinite(Number(value)));
