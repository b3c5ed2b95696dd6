"""The command `tilewright`, also `python -m tilewright`."""

import signal
import sys

from tilewright import _native


def main() -> None:
    """Runs the command with the words of this process."""
    # The command does not return to Python until it is done: an interrupt ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command(["tilewright", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
