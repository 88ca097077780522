"""The HTTP API: routes, models, access rules and the envelope of every answer."""
