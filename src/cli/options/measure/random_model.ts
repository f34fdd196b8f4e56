const RANDOM = "random:";

/**
 * The config.json that `--model random:FILE` or `--draft random:FILE` names, for a model of that shape
 * with random weights; undefined where a model is named.
 */
export function randomConfig(name: string | undefined): string | undefined {
  return name?.startsWith(RANDOM) ? name.slice(RANDOM.length) : undefined;
}

/** Names of models of random weights, for paths of config files with commas between them. */
export function randomNames(configs: string): string {
  return configs.split(",").map((path) => `${RANDOM}${path}`).join(",");
}

/** Is a model of random weights named, or several. */
export function isRandom(model: unknown): boolean {
  return typeof model === "string" && randomConfig(model) !== undefined;
}
