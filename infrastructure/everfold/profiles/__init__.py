"""Profiles: which store, model, plugins and prompt a host runs with."""
