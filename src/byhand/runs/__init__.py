"""A run's folder on disk: its checkpoints, its metrics, its lock."""
