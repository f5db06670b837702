"""How many tokens a conversation takes: prices, usage anchors, and the estimate that both give."""
