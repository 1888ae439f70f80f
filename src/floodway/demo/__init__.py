"""The demonstration: ad events through a calm, a flood and a calm, and a picture of it."""
