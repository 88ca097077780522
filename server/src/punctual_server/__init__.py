"""The server of Punctual as a package: its API and engine, its assembly and its console."""
