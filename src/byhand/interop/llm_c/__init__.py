"""Model files of llm.c."""
