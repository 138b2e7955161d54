"""One agent run, from claim to fenced completion, on this machine."""
