"""The front end: from Python source to graphs."""
