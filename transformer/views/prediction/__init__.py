"""Which token comes next, and why?"""
