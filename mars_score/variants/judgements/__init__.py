"""Judgements: what is contradicted, supported and unsupported in a candidate, and by what."""
