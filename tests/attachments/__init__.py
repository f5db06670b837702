"""Tests of attachments: the stores, admission, request versions."""
