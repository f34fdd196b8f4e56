// No statement for a row of a tile.
