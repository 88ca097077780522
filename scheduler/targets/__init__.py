"""The targets that jobs call: `types` (one module per target type), named targets, and the schemas of their payloads."""
