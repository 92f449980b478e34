"""How programs ask for a division over devices: meshes, layouts, strategies."""
