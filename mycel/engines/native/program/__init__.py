"""Programs: steps as a table with addresses and sizes, kept and run."""
