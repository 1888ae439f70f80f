"""Figures of one thing each: a hop, an epoch, a cost, a planned run, a soak."""
