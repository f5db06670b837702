"""The whole product against strict providers: host, plugins, agent, adapter, SDK, HTTP, store."""
