"""Sessions as aggregates: the log, the surface fold, projections, forks and repair."""
