import assert from "node:assert/strict";
import { locate } from "../../../src/cli/open/locate.ts";
import { ggufTexts } from "../../../src/model/files/gguf.ts";
import { fakeIo } from "../fake.ts";

const encoder = new TextEncoder();
const u32 = (n: number) => [...new Uint8Array(Uint32Array.of(n).buffer)];
const u64 = (n: number) => [...new Uint8Array(BigUint64Array.of(BigInt(n)).buffer)];
const text = (value: string) => [...u64(encoder.encode(value).length), ...encoder.encode(value)];
const textKey = (key: string, value: string) => [...text(key), ...u32(8), ...text(value)];

function gguf(...keys: number[][]): Uint8Array {
  return Uint8Array.from([
    ...encoder.encode("GGUF"),
    ...[...u32(3), ...u64(2), ...u64(keys.length)],
    ...keys.flat(),
  ]);
}

/** Keys of every kind that come before. */
const OTHERS = [
  textKey("general.architecture", "qwen3"),
  [...text("general.count"), ...u32(4), ...u32(7)],
  [...text("general.ratio"), ...u32(12), ...u64(1)],
  [...text("general.tags"), ...u32(9), ...u32(8), ...u64(2), ...text("a"), ...text("b")],
  [...text("general.sizes"), ...u32(9), ...u32(5), ...u64(3), ...u32(1), ...u32(2), ...u32(3)],
];

Deno.test("gguf: texts between keys of other kinds; a cut or a lie ends them", () => {
  const file = gguf(...OTHERS, textKey("general.name", "Toy 4B"));
  const expected = new Map([["general.architecture", "qwen3"], ["general.name", "Toy 4B"]]);
  assert.deepEqual(ggufTexts(file), expected);
  for (let size = 24; size < file.length; size++) {
    const texts = ggufTexts(file.subarray(0, size));
    assert.ok(
      texts !== undefined && [...texts].every(([key, value]) => expected.get(key) === value),
    );
  }
  const endless = [...text("x"), ...u32(9), ...u32(8), ...u64(2 ** 52)];
  assert.equal(ggufTexts(gguf(endless))?.size, 0);
  assert.equal(ggufTexts(gguf([...text("x"), ...u32(9), ...u32(77), ...u64(1)]))?.size, 0);
  assert.equal(ggufTexts(encoder.encode("hello")), undefined);
});

Deno.test("a GGUF file or folder is refused with the model that it was made from", async () => {
  const at = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  const refusal = async (model: string): Promise<string> => {
    const located = locate({ model }, { io: fakeIo(), quiet: true });
    return await located.then(() => assert.fail("no error"), (error: Error) => error.message);
  };
  try {
    const file = `${at}/toy.gguf`;
    const cases: [Uint8Array, string][] = [
      [
        gguf(...OTHERS, textKey("general.source.url", "https://huggingface.co/org/toy/")),
        "use what it was made from: org/toy",
      ],
      [
        gguf(textKey("general.source.huggingface.repository", "org/toy")),
        "use what it was made from: org/toy",
      ],
      [
        gguf(textKey("general.source.url", "hf://a/b/c"), textKey("general.name", "Toy\n4B")),
        'use the original in safetensors (it is called "Toy\\n4B")',
      ],
      [gguf(), "use the original in safetensors"],
    ];
    for (const [bytes, advice] of cases) {
      Deno.writeFileSync(file, bytes);
      const message = `Cannot open "${file}": a GGUF file, which is not read; ${advice}`;
      assert.equal(await refusal(file), message);
      assert.equal(await refusal(at), message);
    }
    const card = "---\nlicense: mit\nbase_model:\n- org/original\n---\n# Toy\nbase_model: a/b\n";
    Deno.writeTextFileSync(`${at}/README.md`, card);
    assert.match(await refusal(at), /; use what it was made from: org\/original$/);
    Deno.writeTextFileSync(`${at}/model.safetensors`, "");
    assert.equal((await locate({ model: at }, { io: fakeIo(), quiet: true })).model, at);
  } finally {
    Deno.removeSync(at, { recursive: true });
  }
});
