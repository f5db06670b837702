"""Read models: what an application wants to know of a session, folded after commit."""
