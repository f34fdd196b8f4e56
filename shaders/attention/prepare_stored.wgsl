// queries_stored.wgsl has nothing to prepare.
