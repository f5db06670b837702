"""Durable omission of a conversation's oldest images."""
