"""The targets of jobs: `types` (one module per target type), named targets, and the schemas of their payloads."""
