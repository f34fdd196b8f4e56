/** What config.json and tokenizer.json already say of a model that does not run, before its weights are downloaded. */
import { UsageError } from "../../errors.ts";
import { sizeOf } from "../../hub/cache.ts";
import { readJson } from "../../hub/snapshot.ts";
import { readScheme } from "../../model/checkpoint/quantized/scheme.ts";
import { parseModelConfig } from "../../model/config/config.ts";
import { parseDraftSizes } from "../../model/config/draft_config.ts";
import { fieldsOf, value } from "../../model/files/fields.ts";
import { noTokenizer } from "../../text/tokenizer.ts";

/**
 * Refuses a model by the texts of its repository: an architecture or a quantization that is not known, or no
 * tokenizer.json.
 *
 * @param folder the snapshot that has the texts, and no weights yet.
 * @param of.isTarget whether it is to be the target; else it may be a draft too, which has no tokenizer.
 * @throws UsageError as opening the whole model would.
 */
export function refuseTexts(
  folder: string,
  { name, isTarget }: { readonly name: string; readonly isTarget: boolean },
): void {
  const config = fieldsOf(name, "config.json", readJson(`${folder}/config.json`) ?? {});
  // What config.json lacks is refused with the files at hand.
  if (value(config, "architectures") === undefined) return;
  readScheme(config);
  if (isTarget || !isDraft()) {
    parseModelConfig(name, config.values, readJson(`${folder}/generation_config.json`) ?? {});
  }
  if (isTarget && sizeOf(`${folder}/tokenizer.json`) === undefined) throw noTokenizer(name);

  function isDraft(): boolean {
    try {
      parseDraftSizes(config);
      return true;
    } catch (error) {
      if (error instanceof UsageError) return false;
      throw error;
    }
  }
}
