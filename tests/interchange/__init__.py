"""Tests of import and export, on real files and a real store."""
