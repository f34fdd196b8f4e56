// Queries over latents and the new latents of each row, for latent attention (MLA): one launch of workgroups of three
// kinds.
//
// out[r, h] = [W_h^T q_n[r, h]; rope(q_r[r, h])], q[r, h] = [q_n; q_r]: queries over latents.
// The first HEAD_BLOCKS along x absorb: W_h^T q_n, with keys k = W_h latent,
// where W_h is the first NOPE of the NOPE + VALUE rows that head h has in kv_b_proj. One workgroup per
// (head, 64 columns, $ROWS rows). Invocation (part p, vec8 e) sums columns 8e .. 8e + 7 over the rows
// p, p + PARTS, ... of W_h; the parts are added in order. $ROWS does not enter.
//
// The next TURN_BLOCKS $ROWS turn: rope(q_r). An invocation has four elements.
//
// The others store: [norm(c) * norm_weight; rope(k_r)] of [c; k_r], one for all heads, into the row's
// cell of the pages. One workgroup per row. Invocation l squares elements l, l + 64, ...; eights of
// invocations are added in order, and then their sums.
//
// rope turns the last ROPE elements of a head: pairs (2i, 2i + 1) where INTERLEAVED is 1 (DeepSeek), pairs
// (i, i + ROPE / 2) otherwise; (a, b) -> (a cos - b sin, b cos + a sin), both stored where they were.
//
// A row of x is [.. q of all heads ..; c; k_r], or one of the two where they are not made together.

//#import lib/weights_$weights
//#import lib/rows
//#import lib/kv_store

override HEADS: u32;
override NOPE: u32;
override VALUE: u32;
override X_COLS: u32; // of a row of x
override X_LATENT: u32; // its first element that is c
override HEAD_BLOCKS: u32; // workgroups that absorb
override TURN_BLOCKS: u32; // workgroups that turn the queries of a row
override EPS: f32;
override TABLE_PAGES: u32; // pages per slot in the block table
override ROPE: u32; // a multiple of 4
override INTERLEAVED: u32; // 1: neighbours are a rope pair

const RANK = $RANKu;
const HEAD_DIM = $HEAD_DIMu; // RANK + ROPE
const VEC8S = RANK / 8u;
const BLOCKS = $BLOCKSu; // workgroups of a head
const THREADS = 64u;
const WIDE = 8u; // vec8s side by side
const PARTS = THREADS / WIDE;

@group(0) @binding(1) var<storage, read> x: array<f32>; // [rows, X_COLS]
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, HEAD_DIM / 4]
@group(0) @binding(3) var<storage, read> rope: array<vec2<f32>>; // [positions, ROPE / 2]: cos, sin
@group(0) @binding(4) var<storage, read> rows: array<Row>; // [rows]
@group(0) @binding(5) var<storage, read> norm_weight: array<f32>; // [RANK]
@group(0) @binding(6) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(7) var<storage, read_write> keys: array<u32>; // [pages, PAGE], rows of a dtype

var<private> values: array<u32, 1>; // for `store_value`, which is not called: values are parts of keys

var<workgroup> partial: array<vec4<f32>, PARTS * $BATCHu * 2u * WIDE>;
var<workgroup> squares: array<f32, THREADS>;
var<workgroup> eights: array<f32, 8>;
var<workgroup> line: array<f32, HEAD_DIM>; // a row of latents before it is stored

// Element j of the rotated x[first .. first + ROPE].
fn turned(first: u32, j: u32, position: u32) -> f32 {
  let half = ROPE / 2u;
  let i = select(j % half, j / 2u, INTERLEAVED == 1u);
  let a = first + select(i, 2u * i, INTERLEAVED == 1u);
  let b = a + select(half, 1u, INTERLEAVED == 1u);
  let turn = rope[position * half + i];
  return select(
    fma(x[b], turn.x, x[a] * turn.y),
    fma(x[a], turn.x, -(x[b] * turn.y)),
    first + j == a,
  );
}

// Computes W_h^T q_n of a block of columns, for rows from `row` on.
fn absorb(block: u32, row: u32, count: u32, thread: u32) {
  let head = block / BLOCKS;
  let wide = thread % WIDE;
  let part = thread / WIDE;
  let e = block % BLOCKS * WIDE + wide;
  let first = head * (NOPE + VALUE);
  //#for r in ROWS
  let q$r = min(row + $ru, count - 1u) * X_COLS + head * (NOPE + ROPE);
  var lo$r = vec4<f32>(0.0);
  var hi$r = vec4<f32>(0.0);
  //#endfor
  let whole = NOPE % (PARTS * $AHEADu) == 0u && VEC8S % WIDE == 0u; // nothing to leave out
  for (var i = part; i < NOPE; i += PARTS * $AHEADu) {
    //#for a in AHEAD
    let i$a = i + $au * PARTS;
    let at$a = select(min(i$a, NOPE - 1u), i$a, whole);
    let block$a = load_block((first + at$a) * VEC8S + select(min(e, VEC8S - 1u), e, whole));
    //#endfor
    //#for a in AHEAD
    {
      let w = vec8_0(block$a);
      //#for r in ROWS
      {
        let own = vec4<f32>(select(0.0, x[q$r + at$a], whole || i$a < NOPE));
        lo$r = fma(own, w.lo, lo$r);
        hi$r = fma(own, w.hi, hi$r);
      }
      //#endfor
    }
    //#endfor
  }
  //#for b in BATCHES
  workgroupBarrier();
  //#for r in BATCH
  {
    let to = (part * $BATCHu + $ru) * 2u * WIDE + wide;
    partial[to] = lo$(b * BATCH + r);
    partial[to + WIDE] = hi$(b * BATCH + r);
  }
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < $BATCHu * 2u * WIDE; i += THREADS) {
    var sum = vec4<f32>(0.0);
    //#for p in PARTS
    sum += partial[$pu * $BATCHu * 2u * WIDE + i];
    //#endfor
    let r = row + $bu * $BATCHu + i / (2u * WIDE);
    let own = block % BLOCKS * WIDE + i % WIDE;
    if (r < count && own < VEC8S) {
      out[(r * HEADS + head) * (HEAD_DIM / 4u) + 2u * own + i / WIDE % 2u] = sum;
    }
  }
  //#endfor
}

// Computes rope(q_r) of four elements an invocation.
fn turn(block: u32, row: u32, thread: u32) {
  let four = block * THREADS + thread; // of the row's
  let head = four / (ROPE / 4u);
  let j = 4u * (four % (ROPE / 4u));
  if (head >= HEADS) {
    return;
  }
  let first = row * X_COLS + head * (NOPE + ROPE) + NOPE;
  let position = rows[row].position;
  out[((row * HEADS + head) * HEAD_DIM + RANK + j) / 4u] = vec4<f32>(
    turned(first, j, position),
    turned(first, j + 1u, position),
    turned(first, j + 2u, position),
    turned(first, j + 3u, position),
  );
}

// Stores the latent of row `at`. Everything is loaded before the first wait.
fn store_latent(at: u32, thread: u32) {
  let row = rows[at];
  let first = at * X_COLS + X_LATENT;
  //#for s in STEPS
  let d$s = thread + $su * THREADS;
  let there$s = ($su + 1u) * THREADS <= RANK || d$s < RANK;
  let x$s = x[first + select(RANK - 1u, d$s, there$s)];
  let gain$s = norm_weight[select(RANK - 1u, d$s, there$s)];
  //#endfor
  let page = pages[row.slot * TABLE_PAGES * row.live + row.cell / PAGE];
  for (var j = thread; j < ROPE; j += THREADS) {
    line[RANK + j] = turned(first + RANK, j, row.position);
  }
  var square = 0.0;
  //#for s in STEPS
  if (there$s) {
    square = fma(x$s, x$s, square);
  }
  //#endfor
  squares[thread] = square;
  workgroupBarrier();
  if (thread < 8u) {
    var sum = 0.0;
    //#for l in 8
    sum += squares[8u * thread + $lu];
    //#endfor
    eights[thread] = sum;
  }
  workgroupBarrier();
  var sum = 0.0;
  //#for l in 8
  sum += eights[$l];
  //#endfor
  let scale = 1.0 / sqrt(sum / f32(RANK) + EPS);
  //#for s in STEPS
  if (there$s) {
    line[d$s] = x$s * scale * gain$s;
  }
  //#endfor
  workgroupBarrier();
  let half = HEAD_DIM / 2u;
  for (var w = thread; w < half * row.live; w += THREADS) {
    store_key(page * PAGE + row.cell % PAGE, w, vec2<f32>(line[w], line[w + half]));
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let count = arrayLength(&x) / X_COLS;
  let row = tile.y * $ROWSu;
  let turning = HEAD_BLOCKS + TURN_BLOCKS * $ROWSu;
  if (tile.x < HEAD_BLOCKS) {
    absorb(tile.x, row, count, thread);
  } else if (tile.x < turning) {
    let each = max(TURN_BLOCKS, 1u);
    let own = row + (tile.x - HEAD_BLOCKS) / each;
    if (own < count) {
      turn((tile.x - HEAD_BLOCKS) % each, own, thread);
    }
  } else if (row + tile.x - turning < count) {
    store_latent(row + tile.x - turning, thread);
  }
}
