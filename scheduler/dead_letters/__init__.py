"""Jobs that failed or were killed: groups by error, and redrives of one or many."""
