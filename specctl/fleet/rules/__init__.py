"""What the parts of an inventory must be together, split by subject; each rule yields Problems and never stops at the first."""
