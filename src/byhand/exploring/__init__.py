"""One pass of a model over a text, as a page looks at it: whole arrays, cut answers, and what changes would do."""
