"""Tests of the domain: one file for each module or group of rules, and properties over whole logs."""
