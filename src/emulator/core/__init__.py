"""What every room notes and reads: settings, clock, errors, callers, logs, limits, changes, faults and journal."""
