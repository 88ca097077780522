"""The laboratory: what simulates, measures and proves Punctual."""
