"""Loop nests, the form in which generated code is described."""
