"""Parquet and Arrow files, and datasets of Hugging Face, which hold tables of Arrow."""
