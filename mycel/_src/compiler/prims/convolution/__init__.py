"""Convolutions and sliding windows over images, and the factors they are divided by."""
