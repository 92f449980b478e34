"""`mindspore.device_context`: devices, and their settings. There is one device, the CPU."""
