"""Where members come from: queries run against other people's databases, read in pieces and never written to."""
