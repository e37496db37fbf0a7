"""Files: reads are bounded, since others may have written them; writes are whole or not at all."""
