"""Model files of llama2.c."""
