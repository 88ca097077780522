"""Groups: how the ends of their members are counted, and which call-backs follow. `docs/internals/groups.md` describes it."""
