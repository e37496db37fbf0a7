"""The book: where each equation is, worked numbers, and pages that are generated from both."""
