"""Running plans: arena, threads, training, decoding, profiles."""
