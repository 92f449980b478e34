"""What programs do and cost: accounts, estimates and traces."""
