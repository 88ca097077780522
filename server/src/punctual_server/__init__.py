"""The server side of Punctual as a package: its API and its engine, without AWS."""
