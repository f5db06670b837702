"""Words shared with providers: images in messages and request budgets."""
