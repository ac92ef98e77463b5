"""Values to what a person sees: Rich renderables and plain lines; pure."""
