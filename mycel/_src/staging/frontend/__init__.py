"""From Python source to graphs."""
