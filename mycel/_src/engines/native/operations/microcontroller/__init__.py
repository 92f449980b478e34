"""int8 layers for microcontrollers: kernels for Helium, for DSP instructions, or for neither."""
