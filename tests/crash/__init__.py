"""Tests in which processes are killed or race each other."""
