"""Where members come from: queries against other databases, read in pieces and never written to."""
