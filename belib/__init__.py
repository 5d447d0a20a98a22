"""Behavioral entropy: entropies, k-NN estimators, intrinsic rewards, and datasets for offline RL.

Implements, checks and extends Suttle, Suresh and Nieto-Granda, *Behavioral Entropy-Guided Dataset
Generation for Offline Reinforcement Learning* (ICLR 2025).

Modules and names without a leading underscore are public. Import the modules that you use: those of
entropies and estimators of arrays need neither torch nor MuJoCo.
"""
