"""How ranks exchange arrays: one interface, and what carries it out."""
