"""Servers on loopback that answer like model providers, strict ones, for every test that needs one."""
