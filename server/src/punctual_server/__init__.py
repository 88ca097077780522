"""The server of Punctual: its engine, its assembly and its console."""
