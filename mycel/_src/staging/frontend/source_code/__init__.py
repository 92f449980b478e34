"""Source code of the user: syntax trees of functions, scopes of names, and tracebacks."""
