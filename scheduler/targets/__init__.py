"""What a job calls: `types` (one module per target type), named targets, and the schemas of their payloads."""
