/**
 * `deno run -A tools/recording.ts`: writes docs/recording.svg, in which the embedded model answers a prompt with
 * and without drafts. The picture shows the program's output at the times at which it came.
 */
import { fileURLToPath } from "node:url";
import strftime from "strftime";

/** A part of an answer, and when it was written: ms after the first part. */
export interface Piece {
  readonly text: string;
  readonly at: number;
}

/** One run of the program. */
export interface Take {
  /** The command as typed, in lines. */
  readonly command: readonly string[];
  readonly pieces: readonly Piece[];
  /** Statistics of the run: tokens of the answer, and the draft rounds that they took. */
  readonly tokens: number;
  readonly rounds?: number;
  readonly device: string;
}

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const PROMPT = "Tell me a story about a fox and a lantern.";
const TAKES = 7;
/** About how long the slowest take is shown. At a GPU's speed it would be over too soon to see. */
const SHOWN_MS = 6000;
const COLUMNS = 46;
const [CHAR, LINE, PAD, GAP, WIDTH] = [7.8, 19, 14, 12, COLUMNS * 7.8 + 28];

async function take(numSteps: number): Promise<Take> {
  const flags = ["--temperature", "0", "--num-steps", `${numSteps}`];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "main.ts", "generate", "--stats", ...flags, PROMPT],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stderr = new Response(child.stderr).text();
  const pieces: Piece[] = [];
  let first: number | undefined;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    first ??= performance.now();
    pieces.push({ text, at: performance.now() - first });
  }
  const stats = await stderr;
  if (!(await child.status).success) throw new Error(`Cannot record: ${stats}`);
  const found = (pattern: RegExp) => pattern.exec(stats)?.[1];
  const rounds = found(/^rounds +(\d+)/m);
  return {
    command: [`$ eyrie generate ${flags.join(" ")}`, `  '${PROMPT}'`],
    pieces,
    tokens: Number(found(/^output +(\d+) tokens/m)),
    ...rounds !== undefined && { rounds: Number(rounds) },
    device: found(/^device +(.*?), \w+(, software)?$/m) ?? "",
  };
}

/** Milliseconds from the first piece to the last. */
export function length({ pieces }: Take): number {
  return pieces.at(-1)?.at ?? 0;
}

const textOf = ({ pieces }: Take): string => pieces.map(({ text }) => text).join("").trimEnd();

/** Lines of at most `columns`, broken at spaces, as offsets into the text. */
export function lines(text: string, columns: number): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = [];
  for (let start = 0; start < text.length;) {
    const fits = start + columns >= text.length;
    const space = text.lastIndexOf(" ", start + columns);
    const end = fits ? text.length : space > start ? space : start + columns;
    found.push({ start, end });
    start = text[end] === " " ? end + 1 : end;
  }
  return found;
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/**
 * The takes side by side, one after the other below a caption, as an SVG that repeats for ever.
 * @param slowdown how many times slower than recorded the takes are shown.
 * @throws Error when the takes have different texts.
 */
export function draw(takes: readonly Take[], slowdown: number, caption: string): string {
  const text = textOf(takes[0] as Take);
  if (takes.some((each) => textOf(each) !== text)) throw new Error("The texts differ");
  const rows = lines(text, COLUMNS);
  const seconds = Math.max(...takes.map(length)) * slowdown / 1000 + 3;
  const screen = PAD * 2 + (rows.length + 5) * LINE;
  const [width, height] = [takes.length * (WIDTH + GAP) - GAP, screen + 28];
  const shown = (at: number) =>
    `<animate attributeName="opacity" values="0;1" keyTimes="0;${
      Math.max(at * slowdown / 1000 / seconds, 1e-4).toFixed(4)
    }" calcMode="discrete" dur="${seconds.toFixed(2)}s" repeatCount="indefinite"/>`;
  const put = (at: [column: number, line: number], words: string, kind: string, inner = "") =>
    `<text x="${(PAD + at[0] * CHAR).toFixed(1)}" y="${
      (PAD + (at[1] + 0.8) * LINE).toFixed(1)
    }" textLength="${(words.length * CHAR).toFixed(1)}" class="${kind}">${
      escaped(words)
    }${inner}</text>\n`;

  const terminals = takes.map((each, index) => {
    let [drawn, offset] = ["", 0];
    for (const piece of each.pieces) {
      const [from, to] = [offset, offset += piece.text.length];
      for (const [row, { start, end }] of rows.entries()) {
        const words = text.slice(Math.max(from, start), Math.min(to, end));
        const before = words.length - words.trimStart().length;
        if (words.trim() === "" || from >= end || to <= start) continue;
        const column = Math.max(from, start) - start + before;
        drawn += put([column, row + 3], words.trim(), "a", shown(piece.at));
      }
    }
    const { tokens, rounds } = each;
    const took = `${tokens} tokens in ${(length(each) / 1000).toFixed(2)} s` +
      (rounds === undefined ? "" : `, ${rounds} rounds of drafts`);
    return `<g transform="translate(${(index * (WIDTH + GAP)).toFixed(1)} 0)">
<rect width="${WIDTH.toFixed(1)}" height="${screen}" rx="8" fill="#0f1419"/>
${each.command.map((words, line) => put([0, line], words, "c")).join("")}${drawn}${
      put([0, rows.length + 4], took, "s", shown(length(each)))
    }</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${
    width.toFixed(0)
  } ${height}" role="img" aria-labelledby="title description">
<title id="title">One answer without drafts and with drafts of 3 tokens</title>
<desc id="description">${escaped(text)} ${escaped(caption)}</desc>
<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre}.a{fill:#e6e6e6}` +
    `.c{fill:#7fd1b9}.s{fill:#f0c674}.n{fill:#7a828c;font:11.5px system-ui,sans-serif}</style>
${terminals.join("\n")}
<text x="2" y="${screen + 20}" class="n">${escaped(caption)}</text>
</svg>
`;
}

async function main(): Promise<void> {
  const all: Take[][] = [[], []];
  for (let count = 0; count < TAKES; count++) {
    for (const [index, numSteps] of [0, 3].entries()) all[index]?.push(await take(numSteps));
  }
  const fastest = all.map((each) => each.toSorted((a, b) => length(a) - length(b))[0] as Take);
  const git = new Deno.Command("git", { args: ["rev-parse", "--short", "HEAD"], cwd: ROOT });
  const commit = new TextDecoder().decode((await git.output()).stdout).trim();
  const [cores, load] = [navigator.hardwareConcurrency, Deno.loadavg()[0]];
  const slowdown = Math.max(1, Math.round(SHOWN_MS / Math.max(...fastest.map(length))));
  const caption = `${fastest[0]?.device}, ${cores} cores, load average ${load?.toFixed(0)}; ` +
    `shown ${slowdown} times slower; fastest of ${TAKES} runs; ${strftime("%F")}, ${commit}`;
  await Deno.writeTextFile(`${ROOT}docs/recording.svg`, draw(fastest, slowdown, caption));
}

if (import.meta.main) await main();
