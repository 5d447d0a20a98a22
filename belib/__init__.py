"""Behavioral entropy: entropies, k-NN estimators, intrinsic rewards, and datasets for offline RL.

Implements, checks and extends Suttle, Suresh and Nieto-Granda, *Behavioral Entropy-Guided Dataset
Generation for Offline Reinforcement Learning* (ICLR 2025).
"""
