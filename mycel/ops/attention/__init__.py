"""Attention for training and for service, rotary positions, and routing to experts."""
