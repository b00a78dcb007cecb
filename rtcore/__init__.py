"""The mechanics: pure arrays and numba kernels. No clock, no file, no socket."""
