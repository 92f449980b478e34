"""Layers of int8 networks for processors of microcontrollers: Helium, DSP instructions, or none."""
