"""The interpreter of syntax trees: statements and expressions as closures, and graph breaks."""
