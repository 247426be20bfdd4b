"""python -m dividemix: the command line."""

import sys

from dividemix.cli import main

sys.exit(main())
