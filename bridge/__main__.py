"""``python -m bridge`` is ``hapticd``."""

from bridge.cli import main

if __name__ == "__main__":  # the mouse hand's window is started by spawning this module again
    main()
