"""``python -m bridge.cli`` is ``hapticd``."""

from bridge.cli import main

if __name__ == "__main__":
    main()
