"""The parts of the suite in `everfold.store.testing` that every store of sessions must pass."""
