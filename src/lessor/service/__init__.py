"""The rules: each opens one transaction, reads, lets the model decide, writes with a guard, records."""
