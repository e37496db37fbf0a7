"""`python -m byhand` is the `byhand` command."""

import sys

from byhand.cli.main import main

sys.exit(main())
