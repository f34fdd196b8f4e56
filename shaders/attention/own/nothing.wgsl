// Heads are not read here.
