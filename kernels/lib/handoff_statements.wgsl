// Statements of matmul_resident.wgsl: wait for the words of range tile.z, which other workgroups of the dispatch make,
// while the first weights are on their way. Nothing is assumed about when workgroups run: if words do not come in time,
// this workgroup makes them itself by `make_again(first, count, thread)` of joined.wgsl, with the same bits. The
// importing file declares
//
//   keep_word(i, word)   keeps word i of the range: a number's bits;
//   take_words(thread)   is called when all words are kept.
//#for w in WORDS
let word_at$w = tile.z * RANGE + min(thread + $wu * THREADS, RANGE - 1u);
var word$w = atomicLoad(&handoff[word_at$w]);
//#endfor
for (var turn = 0u; turn < TURNS; turn++) {
  var all_there = true;
  //#for w in WORDS
  all_there = all_there && word$w != 0u;
  //#endfor
  if (all_there) {
    break;
  }
  //#for w in WORDS
  word$w = atomicLoad(&handoff[word_at$w]);
  //#endfor
}
//#for w in WORDS
keep_word(min(thread + $wu * THREADS, RANGE - 1u), word$w);
if (word$w == 0u) {
  late = 1u;
}
//#endfor
if (workgroupUniformLoad(&late) != 0u) {
  late = 0u;
  make_again(tile.z * MAKERS, MAKERS, thread);
  workgroupBarrier();
  //#for w in WORDS
  keep_word(min(thread + $wu * THREADS, RANGE - 1u), atomicLoad(&handoff[word_at$w]));
  //#endfor
  workgroupBarrier();
  // The blocks are loaded again, so that no register keeps them until here.
  //#for p in PAIRS
  //#for j in AHEAD
  block_a$p_$j = load_block(at$p + within($ju * LANES, last));
  block_b$p_$j = load_block(at$p + half * blocks + within($ju * LANES, last));
  //#endfor
  //#endfor
}
// Stores zeros behind a range that ends within a block.
for (var i = RANGE + thread; i < $(8 * STAGE)u; i += THREADS) {
  keep_word(i, 0u);
}
take_words(thread);
own_range = tile.z;
workgroupBarrier();
if (thread == 0u) {
  done(tile.z);
}
