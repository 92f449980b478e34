"""The AST interpreter: statements and expressions as closures, and graph breaks."""
