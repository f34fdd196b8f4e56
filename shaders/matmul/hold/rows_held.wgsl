// rows.wgsl declares nothing.
