"""The promises of Punctual as scenarios on a running stack: `make demo`, `burst`, `drill` and `load`, the system tests, `make prove`."""
