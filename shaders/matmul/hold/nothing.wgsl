// Nothing is waited for.
