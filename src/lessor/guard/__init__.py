"""Gates in the way of an agent's own tools: programs that are started for one question."""
