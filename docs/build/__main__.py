"""`python docs/build`: write every stale page and the index of `where`, or with --check name them."""

import sys

from byhand.errors import ByhandError

try:
    from pages.filling import main

    raise SystemExit(main(sys.argv[1:]))
except ModuleNotFoundError as error:
    if error.name != "jinja2":
        raise
    print(
        "error: templates of pages need Jinja. Use python3 dev.py docs, or pip install 'jinja2>=3.1.6'.",
        file=sys.stderr,
    )
    raise SystemExit(2) from None
except ByhandError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
