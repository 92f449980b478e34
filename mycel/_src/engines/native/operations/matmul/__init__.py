"""Dense code of our own: register tiles, packed panels, and products made of them."""
