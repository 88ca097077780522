"""One action on many jobs or tasks: start, follow and abort it, and carry it out step by step at its rate."""
