// queries/stored.wgsl has nothing to prepare.
