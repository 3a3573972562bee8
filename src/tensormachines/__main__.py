"""`python -m tensormachines` is `tensormachines`."""

import sys

from .cli import main

sys.exit(main())
