// Jobs sorted by expert into tiles, so that an expert's weights are read once for a tile: job j is
// row j / top_k of x at the row's expert j % top_k. A tile is the expert and $TILE of its jobs, NOTHING
// past the last; tiles left over have NOTHING for an expert.
//
// One workgroup; an expert's lane counts its jobs, and then places them behind those of the experts
// before it.

override EXPERTS: u32;
override TILES: u32;
override LANES: u32;

const TILE = $TILEu;
const NOTHING = 0xffffffffu;

@group(0) @binding(0) var<storage, read> experts: array<u32>; // [jobs]
@group(0) @binding(1) var<storage, read_write> tiles: array<u32>; // [TILES, 1 + TILE]

var<workgroup> counts: array<u32, EXPERTS>; // of tiles

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
  let jobs = arrayLength(&experts);
  for (var e = lane; e < EXPERTS; e += LANES) {
    var count = 0u;
    for (var j = 0u; j < jobs; j++) {
      count += u32(experts[j] == e);
    }
    counts[e] = (count + TILE - 1u) / TILE;
  }
  workgroupBarrier();
  for (var e = lane; e < EXPERTS; e += LANES) {
    var first = 0u;
    for (var other = 0u; other < e; other++) {
      first += counts[other];
    }
    var count = 0u;
    for (var j = 0u; j < jobs; j++) {
      if (experts[j] == e) {
        let at = (first + count / TILE) * (1u + TILE);
        tiles[at] = e;
        tiles[at + 1u + count % TILE] = j;
        count++;
      }
    }
    for (; count % TILE > 0u; count++) {
      tiles[(first + count / TILE) * (1u + TILE) + 1u + count % TILE] = NOTHING;
    }
  }
  var used = 0u;
  for (var e = 0u; e < EXPERTS; e++) {
    used += counts[e];
  }
  for (var t = used + lane; t < TILES; t += LANES) {
    tiles[t * (1u + TILE)] = NOTHING;
  }
}
