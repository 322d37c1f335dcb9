"""Tables for people, computed and ordered already, and their markup."""
