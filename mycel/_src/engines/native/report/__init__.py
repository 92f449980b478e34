"""Reports on programs: accounts of their steps, estimates of cost and memory, and traces."""
