"""Tests of the shipped plugins."""
