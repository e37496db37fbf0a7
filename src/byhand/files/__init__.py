"""Files: read within bounds, since others may have written them; written whole or not at all."""
