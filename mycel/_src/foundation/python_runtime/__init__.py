"""What is asked of the Python interpreter: collection, finalizers, frames, syntax trees."""
