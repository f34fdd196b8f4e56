import { PolicyError } from "./policy.ts";
import { type DraftShape, MAX_ROWS, MAX_STEPS, MAX_TOPK } from "./round_shape.ts";
import { poolSize } from "./trees.ts";

/** Verify rows of a tree where none are asked for. */
const DEFAULT_ROWS = 8;

/**
 * The tier of EAGLE-2's trees.
 *
 * @param of.depth draft levels (num_steps).
 * @param of.width candidates a node (eagle_topk).
 * @param of.rows verify rows, the root included (num_draft_tokens); default 8, or as many as a chain
 * has where that is more, or as there are candidates where that is fewer.
 * @param where what the error text begins with.
 * @throws PolicyError that says the largest number allowed.
 */
export function treeShape(
  { depth, width, rows: asked }: {
    readonly depth: number;
    readonly width: number;
    readonly rows: number | undefined;
  },
  where: string = "",
): DraftShape {
  const of = `of ${depth} ${depth === 1 ? "step" : "steps"} and topk ${width}`;
  if (depth < 1 || depth > MAX_STEPS || width < 1 || width > MAX_TOPK) {
    throw new PolicyError(
      `${where}Cannot draft trees ${of}: steps are 1 to ${MAX_STEPS}, topk is 1 to ${MAX_TOPK}`,
    );
  }
  const most = Math.min(MAX_ROWS, poolSize({ depth, width }) + 1);
  const rows = asked ?? Math.min(most, Math.max(DEFAULT_ROWS, depth + 1));
  if (rows >= 2 && rows <= most) return { depth, width, rows };
  throw new PolicyError(
    `${where}Cannot verify ${rows} draft tokens a round in trees ${of}: allowed are 2 to ${most}`,
  );
}

/**
 * EAGLE's own spelling, `total_token=60,depth=7,top_k=10`: its depth counts the levels after the
 * first. What is left out is what EAGLE's `from_pretrained` has. `steps:topk:rows` is read too.
 *
 * @throws PolicyError for anything else.
 */
export function treeNamed(text: string): DraftShape {
  const short = /^(\d+):(\d+):(\d+)$/.exec(text);
  if (short) {
    const [depth = 0, width = 0, rows = 0] = short.slice(1).map(Number);
    return treeShape({ depth, width, rows });
  }
  const given = { total_token: 60, depth: 7, top_k: 10 };
  for (const part of text.split(",")) {
    const [, key, value] = /^(total_token|depth|top_k)=(\d+)$/.exec(part.trim()) ?? [];
    if (key === undefined) {
      throw new PolicyError(
        `Cannot read "${part}": a tree is total_token=60,depth=7,top_k=10 or steps:topk:rows, 5:4:8`,
      );
    }
    given[key as keyof typeof given] = Number(value);
  }
  return treeShape({ depth: given.depth + 1, width: given.top_k, rows: given.total_token });
}

/** SGLang's automatic (num_steps, eagle_topk, num_draft_tokens), by the target's architecture. */
export function automaticTree(algorithm: string, architecture: string): DraftShape {
  return algorithm !== "STANDALONE" && architecture === "LlamaForCausalLM"
    ? { depth: 5, width: 4, rows: 8 }
    : { depth: 3, width: 1, rows: 4 };
}
