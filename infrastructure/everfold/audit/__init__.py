"""Walks a stored log, folds it again from nothing and reports differences."""
