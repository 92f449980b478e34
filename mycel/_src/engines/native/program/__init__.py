"""Programs: tables of steps with addresses and sizes, how they are stored and run."""
