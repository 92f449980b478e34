"""Loop nests, how they run, and the code made of them."""
