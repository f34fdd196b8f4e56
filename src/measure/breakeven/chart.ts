/** A measured value and its 95 % interval. */
export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  readonly low: number | null;
  readonly high: number | null;
}

/** A curve of speed-ups over plain decoding. */
export interface ChartSpec {
  /** The label of the chart for screen readers. */
  readonly name: string;
  /** Width in pixels. */
  readonly width: number;
  readonly label: string;
  /** The first and the last x of the axis. */
  readonly ends: readonly [number, number];
  readonly ticks: readonly number[];
  readonly line: readonly (readonly [x: number, y: number])[];
  /** Draws a dot at each point of the line, where each x is a setting. */
  readonly dots: boolean;
  /** The point that the sliders select. */
  readonly now: readonly [x: number, y: number];
  /** The x at which drafting begins or stops to pay, and the label there. */
  readonly stops: readonly (readonly [x: number, text: string])[];
  readonly measured: readonly ChartPoint[];
}

/** Draws the curve as SVG. The function uses nothing but its argument, because its source is written into the page. */
export function chart(spec: ChartSpec): string {
  const [height, left, right, top, bottom] = [270, 40, 14, 26, 40];
  const { width, ends: [first, last], line, now, measured } = spec;
  // Intervals of few blocks may reach far out: they end at the top.
  const highest = Math.max(
    1.2,
    ...[...line, now].map(([, y]) => y),
    ...measured.map(({ y }) => 1.1 * y),
  );
  // The smallest of 0.25, 0.5, 1, 2, 5, 10, ... that needs at most six lines.
  const step = [0.25, 0.5, 1, 2, 5, 10, 20, 50].find((size) => highest / size <= 6) ?? 100;
  const most = Math.ceil(highest / step) * step;
  const at = (x: number) =>
    (left + (x - first) / (last - first) * (width - left - right)).toFixed(1);
  const up = (y: number) => (height - bottom - y / most * (height - top - bottom)).toFixed(1);
  const text = (x: number | string, y: number | string, anchor: string, said: string) =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${said}</text>`;
  const across = (y: number, kind: string) =>
    `<line class="${kind}" x1="${left}" x2="${width - right}" y1="${up(y)}" y2="${up(y)}"/>`;

  const levels = Array.from({ length: Math.round(most / step) + 1 }, (_, k) => k * step);
  const axes = [
    ...levels.map((y) => across(y, "grid") + text(left - 6, Number(up(y)) + 4, "end", `${y}x`)),
    ...spec.ticks.map((x) => text(at(x), height - bottom + 16, "middle", String(x))),
    text(0, 12, "start", "↑ speed-up over plain decoding"),
    text(width - right, height - 6, "end", `${spec.label} →`),
  ];
  const slower = `<rect class="slower" x="${left}" y="${up(1)}" width="${width - left - right}" ` +
    `height="${(Number(up(0)) - Number(up(1))).toFixed(1)}"/>`;
  const stops = spec.stops.map(([x, said]) => {
    const anchor = x > (first + last) / 2 ? "end" : "start";
    const beside = Number(at(x)) + (anchor === "end" ? -4 : 4);
    return `<line class="stop" x1="${at(x)}" x2="${at(x)}" y1="${top}" y2="${height - bottom}"/>` +
      text(beside, height - bottom - 6, anchor, said);
  });
  const points = measured.map(({ x, y, low, high }) => {
    const interval = low === null || high === null
      ? ""
      : `<line x1="${at(x)}" x2="${at(x)}" y1="${up(Math.max(0, low))}" y2="${
        up(Math.min(most, high))
      }"/>`;
    const [h, v] = [Number(at(x)), Number(up(y))];
    return `<g class="measured">${interval}<path d="M${h} ${v - 5}l5 5l-5 5l-5 -5z"/></g>`;
  });
  const path = line.map(([x, y], k) => `${k === 0 ? "M" : "L"}${at(x)} ${up(y)}`).join("");
  const dots = spec.dots
    ? line.map(([x, y]) => `<circle class="step" cx="${at(x)}" cy="${up(y)}" r="2.5"/>`)
    : [];
  const box = `viewBox="0 0 ${width} ${height}" fill="currentColor"`;
  return `<svg role="img" aria-label="${spec.name}" ${box}>` +
    [
      slower,
      ...axes,
      across(1, "plain"),
      ...stops,
      `<path class="curve" d="${path}"/>`,
      ...dots,
      ...points,
    ].join("") +
    `<circle class="now" cx="${at(now[0])}" cy="${up(now[1])}" r="6"/></svg>`;
}
