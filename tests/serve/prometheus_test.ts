import { equal } from "node:assert/strict";
import parsePrometheus from "npm:parse-prometheus-text-format@1.1.1";
import { openRegistry } from "../../src/serve/service/prometheus.ts";

Deno.test("counters, gauges and histograms as Prometheus reads them", () => {
  const registry = openRegistry();
  const started = registry.counter("started_total", "Begun.");
  const byPath = registry.counter("asked_total", "Asked.", "labelled");
  registry.counter("never_total", "Never.", "labelled");
  const waiting = registry.gauge("waiting", "Waiting.");
  const seconds = registry.histogram("wait_seconds", "Waited.", [0.5, 2]);
  started.add(2);
  started.add(0.5);
  byPath.add(1, { path: "/a", status: "200" });
  byPath.add(1, { path: "/b", status: "404" });
  byPath.add(1, { path: "/a", status: "200" });
  waiting.set(7);
  waiting.set(3);
  for (const value of [0.25, 0.5, 0.75, 2, 3]) seconds.observe(value);
  equal(
    registry.text({ model: "m" }),
    `# HELP started_total Begun.
# TYPE started_total counter
started_total{model="m"} 2.5

# HELP asked_total Asked.
# TYPE asked_total counter
asked_total{path="/a",status="200",model="m"} 2
asked_total{path="/b",status="404",model="m"} 1

# HELP never_total Never.
# TYPE never_total counter

# HELP waiting Waiting.
# TYPE waiting gauge
waiting{model="m"} 3

# HELP wait_seconds Waited.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.5",model="m"} 2
wait_seconds_bucket{le="2",model="m"} 4
wait_seconds_bucket{le="+Inf",model="m"} 5
wait_seconds_sum{model="m"} 6.5
wait_seconds_count{model="m"} 5
`,
  );
});

Deno.test("a label's value may have quotes, backslashes and line ends; no labels have no braces", () => {
  const registry = openRegistry();
  registry.counter("asked_total", "Asked.", "labelled").add(1, { path: '/"a\\\nb' });
  registry.gauge("waiting", "Waiting.");
  const text = registry.text({});
  equal(text.split("\n")[2], 'asked_total{path="/\\"a\\\\\\nb"} 1');
  equal(text.split("\n").at(-2), "waiting 0");
  equal(parsePrometheus(text)[0].metrics[0].labels.path, '/"a\\\nb');
});
