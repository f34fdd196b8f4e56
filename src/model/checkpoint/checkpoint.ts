import { UsageError } from "../../errors.ts";
import { isObject } from "../../objects.ts";
import { quote } from "../files/fields.ts";
import { diskFolder, type Folder, readJson, readText } from "../files/folder.ts";
import type { Checkpoint } from "../files/checkpoint_type.ts";
import { expertStacks } from "./quantized/expert_stacks.ts";
import { nvfp4View } from "./quantized/nvfp4.ts";
import { quantizedView } from "./quantized/checkpoint.ts";
import { openTensors } from "../files/tensor_files.ts";
import { withHeadOfFile } from "./head_of_file.ts";

/**
 * Opens a model or draft folder: config.json and the weights that `openTensors` finds, safetensors or torch's, in one
 * file or in shards. Reads only headers, and what `withHeadOfFile` compares; dispose it to close the files.
 * @throws UsageError when there is no such folder, it is no checkpoint, or a header is broken.
 */
export function openCheckpoint(folder: string): Checkpoint {
  return checkpointOf(diskFolder(folder));
}

/**
 * The checkpoint in `folder`, wherever its bytes come from. In a quantized one each matrix is one tensor.
 * @throws UsageError as above, or when how it is quantized is not supported.
 */
export function checkpointOf(folder: Folder): Checkpoint {
  using stack = new DisposableStack();
  const view = expertStacks(
    quantizedView(nvfp4View(stack.use(storedCheckpoint(folder)))),
  );
  stack.move();
  return view;
}

/** The checkpoint in `folder` with its tensors as they are stored. @throws UsageError as above. */
export function storedCheckpoint(folder: Folder): Checkpoint {
  const config = readJson(folder, "config.json");
  if (config === undefined) {
    throw new UsageError(`Cannot open ${quote(folder.name)}: not a checkpoint (no config.json)`);
  }
  if (!isObject(config)) {
    throw new UsageError(`Cannot open ${quote(folder.name)}: config.json is not a JSON object`);
  }
  using stack = new DisposableStack();
  const view = withHeadOfFile({
    name: folder.name,
    json: (file) => readJson(folder, file),
    text: (file) => readText(folder, file),
    ...stack.use(openTensors(folder)),
  });
  stack.move();
  return view;
}
