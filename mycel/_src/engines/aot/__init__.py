"""Programs as libraries for other machines: objects without runtime, with a header of C."""
