"""From a finding to a change of the source that mends it, proposed only once it is verified."""
