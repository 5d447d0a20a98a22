"""Reward-free agents that collect data, as URLB has them."""
