import type { convertCheckpoint } from "../../model/checkpoint/convert.ts";
import { quantizableTensors } from "../../model/weights/quantizable.ts";
import { bytesText } from "../../text/numbers.ts";
import { INTERRUPTED, type Io } from "../terminal/io.ts";
import type { ConvertOptions } from "../options/options.ts";
import { statusLine } from "../terminal/progress.ts";

/** `convertCheckpoint`, or a fake in tests. */
export type ConvertCheckpoint = typeof convertCheckpoint;

/** `eyrie convert IN OUT`. */
export async function runConvert(
  { from, to, options }: {
    readonly from: string;
    readonly to: string;
    readonly options: ConvertOptions;
  },
  { convert, io }: { readonly convert: ConvertCheckpoint; readonly io: Io },
): Promise<number> {
  const { force, maxShardSize, quantize, quiet, json } = options;
  const status = statusLine(io.stderr, { shown: !quiet });
  const converted = await convert({
    from,
    to,
    force,
    quantize: quantize && { to: quantize, names: quantizableTensors },
    shardBytes: maxShardSize * 1e9,
    signal: io.signal,
    onProgress: status.load,
  }).finally(status.clear);
  if (converted === undefined) return INTERRUPTED;
  const { tensors, bytes, files } = converted;
  io.stdout.write(
    json
      ? `${JSON.stringify({ to, tensors, bytes, files })}\n`
      : `${to}: ${tensors} tensors, ${bytesText(bytes)}\n${
        files.map((file) => `  ${file}\n`).join("")
      }`,
  );
  return 0;
}
