"""The log: recorder, reader, re-execution, comparison, plots and playback."""
