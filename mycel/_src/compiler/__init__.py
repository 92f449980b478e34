"""The compiler: the graph IR, primitives, loop programs, graph transforms, and transports."""
