"""Tests of the ways to model providers."""
