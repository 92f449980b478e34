"""How interpreted code calls functions, native code and methods, and reads attributes."""
