/**
 * Counters, gauges and histograms, and the text that Prometheus reads of them:
 * https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4. The package for this,
 * prom-client, takes 5 MB of an install of 40, for summaries and exemplars that the server has none of.
 */
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

/** A counter or a gauge: a value for each set of labels. */
export interface Value {
  add(amount: number, labels?: Labels): void;
  set(value: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** What follows the name, the labels as text, and the value, a sample each. */
  samples(): Iterable<readonly [suffix: string, labels: string, value: number]>;
}

/** Families in the order in which they were added. */
export interface Registry {
  /** A family with labels has no sample before it counts something, one without them a 0. */
  counter(name: string, help: string, labelled?: "labelled"): Value;
  gauge(name: string, help: string): Value;
  /** @param ends upper ends of the buckets, ascending; the last bucket has none. */
  histogram(name: string, help: string, ends: readonly number[]): Histogram;
  /** @param shared labels of every sample. */
  text(shared: Labels): string;
}

export function openRegistry(): Registry {
  const families: Family[] = [];
  function values(family: Omit<Family, "samples">, first: readonly [string, number][]): Value {
    const byLabels = new Map(first);
    families.push({ ...family, samples: () => byLabels.entries().map(([l, v]) => ["", l, v]) });
    return {
      add(amount, labels = {}) {
        const key = labelsText(labels);
        byLabels.set(key, (byLabels.get(key) ?? 0) + amount);
      },
      set: (value) => void byLabels.set("", value),
    };
  }
  return {
    counter: (name, help, labelled) =>
      values({ name, help, type: "counter" }, labelled === undefined ? [["", 0]] : []),
    gauge: (name, help) => values({ name, help, type: "gauge" }, [["", 0]]),
    histogram(name, help, ends) {
      const counts = new Array<number>(ends.length + 1).fill(0);
      let sum = 0;
      families.push({
        name,
        help,
        type: "histogram",
        *samples() {
          let total = 0; // a bucket counts what is in those below it too
          for (const [at, count] of counts.entries()) {
            total += count;
            yield ["_bucket", labelsText({ le: String(ends[at] ?? "+Inf") }), total];
          }
          yield ["_sum", "", sum];
          yield ["_count", "", total];
        },
      });
      return {
        observe(value) {
          const at = ends.findIndex((end) => value <= end);
          const bucket = at < 0 ? ends.length : at;
          counts[bucket] = (counts[bucket] ?? 0) + 1;
          sum += value;
        },
      };
    },
    text(shared) {
      const all = labelsText(shared);
      return families.map((family) => familyText(family, all)).join("\n");
    },
  };
}

function familyText({ name, help, type, samples }: Family, shared: string): string {
  const lines = [...samples()].map(([suffix, labels, value]) => {
    const text = [labels, shared].filter((part) => part !== "").join(",");
    return `${name}${suffix}${text === "" ? "" : `{${text}}`} ${value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function labelsText(labels: Labels): string {
  return Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`).join(",");
}

/** Escapes a label's value for the format. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
