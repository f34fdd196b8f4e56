import { embeddedFolder } from "../../model/checkpoint/embedded.ts";
import { parseModelConfig } from "../../model/config/config.ts";
import type { Checkpoint } from "../../model/files/checkpoint_type.ts";
import { diskFolder, readJson, readText } from "../../model/files/folder.ts";
import { randomCheckpoint } from "../../model/weights/random_checkpoint.ts";
import { noText, openText } from "../load/text.ts";
import { sentError } from "./errors.ts";
import type { Port } from "./port.ts";
import type { ModelOptions } from "../options.ts";
import type { FromText, TextAnswer, TextQuestion, ToText } from "./text_messages.ts";

/** Renders templates and tokenizes for the thread at the other end, from its "open text" on. */
export function serveText(port: Port<ToText, FromText>): void {
  let answer: (question: TextQuestion) => TextAnswer = () => {
    throw new Error('"ask" before "open text"');
  };
  port.onmessage = ({ data }) => {
    if (data.kind === "open text") {
      try {
        answer = openAnswers(data.model);
      } catch (error) {
        // That error answers every question.
        answer = () => {
          throw error;
        };
      }
      return port.postMessage({ kind: "opened" });
    }
    try {
      port.postMessage({ kind: "answer", value: answer(data.question) });
    } catch (error) {
      port.postMessage({ kind: "error", error: sentError(error) });
    }
  };
  port.postMessage({ kind: "ready" });
}

/** The files of a checkpoint except its weights, which are not opened. */
function textFiles({ model, random }: ModelOptions): Pick<Checkpoint, "name" | "json" | "text"> {
  if (random) return randomCheckpoint(random.target, "target");
  const folder = model === undefined ? embeddedFolder("target") : diskFolder(model);
  return {
    name: folder.name,
    json: (file) => readJson(folder, file),
    text: (file) => readText(folder, file),
  };
}

/** @throws UsageError where the checkpoint's text cannot be used. */
function openAnswers(
  options: ModelOptions,
): (question: TextQuestion) => TextAnswer {
  const checkpoint = textFiles(options);
  const { name } = checkpoint;
  const generation = checkpoint.json("generation_config.json");
  const { vocabSize } = parseModelConfig(name, checkpoint.json("config.json"), generation);
  // The engine's own thread has already given the warnings.
  const { encodePrompt, decode, pieces } = options.random
    ? noText(name, vocabSize)
    : openText(checkpoint, {
      vocabSize,
      onWarning: undefined,
      allowSpecial: options.allowSpecial,
    });

  return (question) => {
    if (question.kind === "encode") return encodePrompt(question.input);
    return question.kind === "decode" ? decode(question.ids) : pieces(question.ids);
  };
}
