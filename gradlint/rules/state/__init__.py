"""Rules about side effects and state: GL6."""
