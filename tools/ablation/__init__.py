"""Comparisons of published methods with each other, each as a function that returns numbers."""
