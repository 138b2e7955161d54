"""The live harness: real processes, a real store, real faults, and a checker that believes only what was logged."""
