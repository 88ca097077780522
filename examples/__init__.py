"""Programs that use Punctual. Each folder has one, with a page that explains it."""
