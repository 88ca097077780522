"""The build of the documentation: the generated reference pages, the diagrams, and the site."""
