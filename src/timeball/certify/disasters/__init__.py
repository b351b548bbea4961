"""Processes, answers, connections and servers that are lost while workers are at work."""
