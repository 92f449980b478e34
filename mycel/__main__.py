"""`python -m mycel`: the command line of `mycel.cli`."""

import sys

from mycel.cli import main

if __name__ == "__main__":
    sys.exit(main())
