"""The model side: one port, an adapter per provider, and the metered client, the only way to a model."""
