"""One file per duty: takes ports and the clock, decides through the pure modules, carries the decisions out."""
