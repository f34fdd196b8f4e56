/** Edits of the text of a matmul, for bench/quantized_rows.ts. */

const EDITS: Readonly<Record<string, (code: string) => string>> = {
  // x is not rounded: what a dispatch before would save. Other bits.
  ready: (code) =>
    replaced(
      code,
      /fn x_of\(lo: vec4<f32>, hi: vec4<f32>\) -> X \{[^}]*\}/,
      code.includes("dot4I8Packed")
        ? code.includes("step: i32")
          ? "fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X { return X(bitcast<vec4<u32>>(lo), bitcast<i32>(hi.x)); }"
          : "fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X { return X(bitcast<vec4<u32>>(lo), hi.x); }"
        : "fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X { return X(lo, hi); }",
    ),
  // Without the product with the scale. Other bits.
  unscaled: (code) =>
    replaced(
      code,
      "return fma(add8(0.0, x.lo, x.hi, w.vec8), w.scale, sum);",
      "return add8(sum, x.lo, x.hi, w.vec8);",
    ),
  // Weights as bytes in the mantissa of 2^23.
  magic: (code) =>
    replaced(
      code,
      /fn whole_bytes\(p: Packed\) -> Whole \{[^}]*\}/,
      `fn magic(w: u32) -> vec4<f32> {
  let u = w ^ 0x80808080u;
  let b = vec4<u32>(u & 0xffu, (u >> 8u) & 0xffu, (u >> 16u) & 0xffu, u >> 24u) | vec4<u32>(0x4b000000u);
  return bitcast<vec4<f32>>(b) - vec4<f32>(8388736.0);
}
fn whole_bytes(p: Packed) -> Whole { return Whole(Vec8(magic(p.lo), magic(p.hi)), p.scale); }`,
    ),
  // Half of the weights so, half by conversion.
  mixed: (code) =>
    replaced(
      code,
      /fn whole_bytes\(p: Packed\) -> Whole \{[^}]*\}/,
      `fn magic(w: u32) -> vec4<f32> {
  let u = w ^ 0x80808080u;
  let b = vec4<u32>(u & 0xffu, (u >> 8u) & 0xffu, (u >> 16u) & 0xffu, u >> 24u) | vec4<u32>(0x4b000000u);
  return bitcast<vec4<f32>>(b) - vec4<f32>(8388736.0);
}
fn whole_bytes(p: Packed) -> Whole { return Whole(Vec8(vec4<f32>(unpack4xI8(p.lo)), magic(p.hi)), p.scale); }`,
    ),
  shift: (code) => replaced(code, "f32(256 * h + l)", "f32((h << 8u) + l)"),
  chain: (code) =>
    replaced(
      code,
      /let l = dot4I8Packed\(x.bytes.z, w.lo\) \+ dot4I8Packed\(x.bytes.w, w.hi\);/,
      "let l = (dot4I8Packed(x.bytes.z, w.lo) + (h << 8u)) + dot4I8Packed(x.bytes.w, w.hi);",
    ).replace("f32(256 * h + l)", "f32(l)"),
  // Bytes of x where the sums go afterwards.
  union: (code) =>
    replaced(
      replaced(
        replaced(code, /var<workgroup> staged_bytes[^;]*;/, ""),
        /staged_bytes\[([^\]]*)\] = own.bytes;/,
        "staged[AT] = bitcast<vec4<f32>>(own.bytes);",
      ).replace(
        "staged[AT]",
        /staged_bytes\[([^\]]*)\] = own.bytes;/.exec(code)?.[0].replace("staged_bytes", "staged")
          .replace(" = own.bytes;", "") ?? "",
      ),
      /X\(staged_bytes\[([^\]]*)\]/,
      `X(bitcast<vec4<u32>>(${
        /X\((staged_bytes\[[^\]]*\])/.exec(code)?.[1]?.replace("staged_bytes", "staged")
      })`,
    ),
  // The steps of x are added to the exponents of scales.
  expo: (code) =>
    replaced(
      replaced(
        replaced(
          replaced(
            code,
            /bytes: vec4<u32>,([^\n]*)\n\s*step: f32,/,
            "bytes: vec4<u32>,\n step: i32,",
          ),
          "lower(a), lower(b)), scale.step)",
          "lower(a), lower(b)), bitcast<i32>(scale.step) - 0x3f800000)",
        ),
        "x.step * w.scale",
        "bitcast<f32>(bitcast<i32>(w.scale) + x.step)",
      ),
      "staged_steps: array<f32",
      "staged_steps: array<i32",
    ),
  // Bytes of x one by one.
  single: (code) =>
    replaced(
      code,
      /\/\/ The low 16 bits of x and z[\s\S]*?fn x_of[^}]*\}/,
      `fn upper(n: vec4<u32>) -> u32 {
  let b = n & vec4<u32>(0xff00u);
  return (b.x >> 8u) | b.y | (b.z << 8u) | (b.w << 16u);
}

fn lower(n: vec4<u32>) -> u32 {
  let b = n & vec4<u32>(0xffu);
  return (b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u)) ^ 0x80808080u;
}

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  let scale = scale_of(lo, hi);
  let a = with_bias(lo, scale.inverse);
  let b = with_bias(hi, scale.inverse);
  return X(vec4<u32>(upper(a), upper(b), lower(a), lower(b)), scale.step);
}`,
    ),
  // q4's nibbles as bytes.
  bytes: (code) =>
    replaced(
      code,
      /fn whole_word\(word: u32, scale: f32\) -> Whole \{[^}]*\}/,
      `fn whole_word(word: u32, scale: f32) -> Whole {
  let lo = unpack4xI8((word << 4u) & 0xf0f0f0f0u);
  let hi = unpack4xI8(word & 0xf0f0f0f0u);
  return Whole(Vec8(vec4<f32>(lo), vec4<f32>(hi)), scale * 0.0625);
}`,
    ),
};

function replaced(code: string, from: string | RegExp, to: string): string {
  const out = code.replace(from, () => to);
  if (out === code) throw new Error(`nothing to edit: ${from}`);
  return out;
}

/** @param names one or more, joined by "+". */
export function edited(code: string, names: string): string {
  return names.split("+").reduce((text, name) => {
    const edit = EDITS[name];
    if (!edit) throw new Error(`no such edit: ${name}`);
    return edit(text);
  }, code);
}
