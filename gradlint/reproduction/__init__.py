"""From a finding to a script that shows it with torch and the user's module alone."""
