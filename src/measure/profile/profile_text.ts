import { markdownTable } from "markdown-table";
import { percentText } from "../../text/numbers.ts";
import { digits } from "../columns.ts";
import type { ProfilePart, ProfileRow } from "./profile.ts";
import type { ProfileTable } from "./profile_session.ts";
import type { Subject } from "../runner.ts";

interface Facts {
  readonly subject: Subject;
  /** 10^9 bytes a second; null where it is not known. */
  readonly bandwidth: { readonly gbps: number | null; readonly given: boolean };
}

const KERNEL_HEADS = [
  "part",
  "label",
  "kernel",
  "calls",
  "us a call",
  "ms in all",
  "share",
  "MB a call",
  "GB/s",
  "GFLOP/s",
  "of floor",
];
const PART_HEADS = ["part", "dispatches", "sum ms", "one pass ms", "gaps ms", "floor ms"];

/** Tables to read or to paste into an issue. */
export function profileText(tables: readonly ProfileTable[], facts: Facts): string {
  const { subject: { model, draft, device, simulated }, bandwidth } = facts;
  const head = [
    `model ${model}, draft ${draft ?? "none"}, device ${device}`,
    bandwidthText(bandwidth),
    "Every dispatch was timed in a pass of its own: such passes wait for each other, and a pass " +
    "has a cost, which small kernels show. One pass: all dispatches of the part together; gaps: " +
    "what that takes beyond the sum, below 0 where passes cost more than gaps.",
    ...simulated ? ["SIMULATED acceptance: timing only"] : [],
  ];
  return [...head, ...tables.flatMap(tableTexts)].join("\n\n") + "\n";
}

function bandwidthText({ gbps, given }: Facts["bandwidth"]): string {
  if (gbps === null) return "bandwidth not known: give --bandwidth for the floor of each kernel";
  return `bandwidth ${digits(gbps)} GB/s (${given ? "given" : "measured"}); ` +
    "of floor: time that the bytes need at that bandwidth, over the time taken";
}

function tableTexts(table: ProfileTable): string[] {
  const { kind, batch, numSteps, context, runs, wholeMs, parts } = table;
  const title = kind === "prefill"
    ? `Prefill of ${context} tokens, median of ${runs}: ${digits(wholeMs)} ms`
    : `Round: batch ${batch}, ${numSteps} draft steps, ${context} tokens of context, ` +
      `median of ${runs}: ${digits(wholeMs)} ms`;
  const rows = parts.flatMap(({ rows }) => rows).map(kernelCells);
  return [
    `## ${title}`,
    markdownTable([KERNEL_HEADS, ...rows], { align: ["l", "l", "l", ...Array(8).fill("r")] }),
    markdownTable([PART_HEADS, ...parts.map(partCells)], { align: ["l", ...Array(5).fill("r")] }),
  ];
}

function kernelCells(row: ProfileRow): string[] {
  const optional = (value: number | null) => value ? digits(value) : "";
  return [
    row.part,
    row.label,
    row.kernel,
    String(row.calls),
    row.us.toFixed(1),
    row.ms.toFixed(3),
    percentText(row.share),
    optional(row.bytes === null ? null : row.bytes / row.calls / 1e6),
    optional(row.gbps),
    optional(row.gflops),
    row.ofFloor === null ? "" : percentText(row.ofFloor),
  ];
}

function partCells({ part, dispatches, kernelMs, passMs, floorMs }: ProfilePart): string[] {
  const times = [kernelMs, passMs, passMs - kernelMs].map((ms) => ms.toFixed(3));
  return [part, String(dispatches), ...times, floorMs === null ? "" : floorMs.toFixed(3)];
}
