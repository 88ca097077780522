"""One module per target type, each with its declaration `TYPE`; `scheduler.targets.registry` finds them."""
