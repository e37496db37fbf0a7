"""Words: both languages, the glossary, formulas as a terminal shows them."""
