"""Numbers: exact and closed forms, arithmetic as text, rounding."""
