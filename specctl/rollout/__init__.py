"""The rollout as values: facts, launch, release, plan, gate and record; pure, carried out by ops through the adapters."""
