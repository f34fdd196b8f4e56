import { percentText } from "../../text/numbers.ts";
import { digits, places } from "../formats.ts";
import { type Column, markdownText, numbers, words } from "../table.ts";
import type { ProfilePart, ProfileRow } from "./profile.ts";
import type { ProfileTable } from "./profile_session.ts";
import type { Subject } from "../runner.ts";

interface Facts {
  readonly subject: Subject;
  /** 10^9 bytes per second; null if it is not known. */
  readonly bandwidth: { readonly gbps: number | null; readonly given: boolean };
}

const KERNEL_COLUMNS: readonly Column<ProfileRow>[] = [
  words("part", ({ part }) => part),
  words("label", ({ label }) => label),
  words("kernel", ({ kernel }) => kernel),
  numbers("calls", ({ calls }) => calls),
  numbers("us a call", ({ us }) => us, places(1)),
  numbers("ms in all", ({ ms }) => ms, places(3)),
  numbers("share", ({ share }) => share, percentText),
  numbers("MB a call", ({ bytes, calls }) => bytes ? bytes / calls / 1e6 : null, digits),
  numbers("GB/s", ({ gbps }) => gbps || null, digits),
  numbers("GFLOP/s", ({ gflops }) => gflops || null, digits),
  numbers("of floor", ({ ofFloor }) => ofFloor, percentText),
];
const PART_COLUMNS: readonly Column<ProfilePart>[] = [
  words("part", ({ part }) => part),
  numbers("dispatches", ({ dispatches }) => dispatches),
  numbers("sum ms", ({ kernelMs }) => kernelMs, places(3)),
  numbers("one pass ms", ({ passMs }) => passMs, places(3)),
  numbers("gaps ms", ({ passMs, kernelMs }) => passMs - kernelMs, places(3)),
  numbers("floor ms", ({ floorMs }) => floorMs, places(3)),
];

/** The profile as Markdown: for each table the kernels and the parts. */
export function profileText(tables: readonly ProfileTable[], facts: Facts): string {
  const { subject: { model, draft, device, simulated }, bandwidth } = facts;
  const head = [
    `model ${model}, draft ${draft ?? "none"}, device ${device}`,
    bandwidthText(bandwidth),
    "Every dispatch was timed in a pass of its own: such passes wait for each other, and a pass " +
    "has a cost, which small kernels show. One pass: all dispatches of the part together; gaps: " +
    "what that takes in addition to the sum, below 0 if passes cost more than the gaps between them.",
    ...simulated ? ["SIMULATED acceptance: timing only"] : [],
  ];
  return [...head, ...tables.flatMap(tableTexts)].join("\n\n") + "\n";
}

function bandwidthText({ gbps, given }: Facts["bandwidth"]): string {
  if (gbps === null) return "bandwidth not known: set EYRIE_BANDWIDTH for the floor of each kernel";
  return `bandwidth ${digits(gbps)} GB/s (${given ? "given" : "measured"}); ` +
    "of floor: time that the bytes need at that bandwidth, over the time taken";
}

function tableTexts(table: ProfileTable): string[] {
  const { kind, batch, numSteps, context, runs, wholeMs, parts } = table;
  const title = kind === "prefill"
    ? `Prefill of ${context} tokens, median of ${runs}: ${digits(wholeMs)} ms`
    : `Round: batch ${batch}, ${numSteps} draft steps, ${context} tokens of context, ` +
      `median of ${runs}: ${digits(wholeMs)} ms`;
  return [
    `## ${title}`,
    markdownText(KERNEL_COLUMNS, parts.flatMap(({ rows }) => rows)),
    markdownText(PART_COLUMNS, parts),
  ];
}
