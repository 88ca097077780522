"""Jobs that report by call-back: tokens, heartbeats and reports."""
