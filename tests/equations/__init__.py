"""One test file for each equation; `strategies` draws what they are tried on, `checks` holds the laws they share."""
