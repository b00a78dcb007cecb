"""Elementary continuous tests between an edge, vertex or face of one body and one of another."""
