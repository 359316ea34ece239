"""From a step function to the ids of an infill: greedy and beam search, blank after blank."""
