"""What stands in for devices and their makers' software where those cannot be: for tests, and to try an adapter."""
