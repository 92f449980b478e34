"""From graphs to steps: what fuses, and where values lie."""
