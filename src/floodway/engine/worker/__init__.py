"""A task's process: its attempts, its turns, its watchdog, and what it finds around it."""
