# Placeholder module: install rules.
