"""Steps: their types, and the builder that adds them and knows where values lie in memory."""
