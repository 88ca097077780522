"""One module per target type; `scheduler.targets.registry` finds them."""
