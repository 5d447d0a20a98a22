"""Offline learners, as ExORL has them."""
