"""How passes are executed: stages on threads, worker processes, and transfer between them."""
