"""Graph building during staging: captures, views, derivatives, symbolic sizes."""
