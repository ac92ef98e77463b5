"""The specctl command line for fleets of speculative-decoding servers; imports nothing, so that start-up stays quick."""
